#include "core/kernels/training/matrix_product_cuda.h"

#include <type_traits>

#include "core/kernels/cublas_descriptors.h"

namespace warpsmith {
namespace {

constexpr uint32_t kAlignment = 16;  // bytes, of every operand
// Micro-batches have many lengths; a forgotten algorithm is asked for again in some 50 us.
constexpr size_t kAlgorithmsMax = 4096;

template <typename T>
constexpr cudaDataType_t kStoredType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

cublasOperation_t Operation(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

// cuBLASLt counts columns first, so it sees c^T = b^T a^T.
template <typename T>
class Multiplication {
 public:
  explicit Multiplication(const MatrixProduct& p)
      : operation_(CUBLAS_COMPUTE_32F, CUDA_R_32F),
        a_(kStoredType<T>, p.a_transposed ? p.rows : p.depth, p.a_transposed ? p.depth : p.rows),
        b_(kStoredType<T>, p.b_transposed ? p.depth : p.columns, p.b_transposed ? p.columns : p.depth),
        c_(p.in_float32 ? CUDA_R_32F : kStoredType<T>, p.columns, p.rows),
        addend_factor_(p.adds ? 1.0f : 0.0f) {
    status_ = operation_.Set(CUBLASLT_MATMUL_DESC_TRANSA, Operation(p.b_transposed));
    if (status_ == CUBLAS_STATUS_SUCCESS) {
      status_ = operation_.Set(CUBLASLT_MATMUL_DESC_TRANSB, Operation(p.a_transposed));
    }
  }

  cublasStatus_t Propose(cublasLtHandle_t handle, CublasWorkspace workspace,
                         cublasLtMatmulAlgo_t& algorithm) const {
    MatmulPreference preference;
    cublasStatus_t status = status_;
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      if (status == CUBLAS_STATUS_SUCCESS) status = preference.Set(attribute, value);
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace.bytes);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kAlignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kAlignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kAlignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kAlignment);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    status = cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(),
                                            preference.get(), 1, &result, &found);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    algorithm = result.algo;
    return result.state;
  }

  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     CublasWorkspace workspace, const T* a, const T* b, const void* addend, void* c,
                     cudaStream_t stream) const {
    if (status_ != CUBLAS_STATUS_SUCCESS) return status_;
    const float one = 1.0f;
    return cublasLtMatmul(handle, operation_.get(), &one, b, b_.get(), a, a_.get(), &addend_factor_, addend,
                          c_.get(), c, c_.get(), &algorithm, workspace.memory, workspace.bytes, stream);
  }

 private:
  MatmulDescriptor operation_;
  MatrixLayout a_, b_, c_;
  float addend_factor_;
  cublasStatus_t status_;
};

}  // namespace

template <typename T>
cublasStatus_t MatrixProducts<T>::Launch(const MatrixProduct& product, const T* a, const T* b, void* c,
                                         cudaStream_t stream, const void* addend) {
  if (product.rows == 0 || product.columns == 0) return CUBLAS_STATUS_SUCCESS;
  const Multiplication<T> multiplication(product);
  auto known = algorithms_.find(product);
  if (known == algorithms_.end()) {
    cublasLtMatmulAlgo_t algorithm;
    const cublasStatus_t status = multiplication.Propose(handle_, workspace_, algorithm);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (algorithms_.size() >= kAlgorithmsMax) algorithms_.clear();
    known = algorithms_.emplace(product, algorithm).first;
  }
  return multiplication.Run(handle_, known->second, workspace_, a, b, addend == nullptr ? c : addend, c,
                            stream);
}

template class MatrixProducts<__nv_bfloat16>;
template class MatrixProducts<float>;

}  // namespace warpsmith
