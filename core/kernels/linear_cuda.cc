#include "core/kernels/linear_cuda.h"

#include <algorithm>

#include "core/kernels/cublas_descriptors.h"

namespace warpsmith {
namespace {

constexpr uint32_t kAlignment = 16;  // bytes, of every operand

template <typename T>
constexpr cudaDataType_t kInputType = CUDA_R_16BF;
template <>
constexpr cudaDataType_t kInputType<__half> = CUDA_R_16F;
template <>
constexpr cudaDataType_t kInputType<float> = CUDA_R_32F;

template <typename T>
cudaDataType_t OutputType(const LinearShape& shape) {
  return shape.output == LinearOutput::kFloat32 ? CUDA_R_32F : kInputType<T>;
}

// cuBLASLt counts columns first, so it sees y^T [columns, rows] = w x^T, with w [depth, columns] transposed.
// CUBLAS_COMPUTE_32F: operands of float32 keep all their bits.
template <typename T>
class Multiplication {
 public:
  Multiplication(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands)
      : operands_(operands),
        residual_factor_(shape.has_residual ? 1.0f : 0.0f),
        operation_(CUBLAS_COMPUTE_32F, CUDA_R_32F),
        weight_(kInputType<T>, shape.depth, shape.columns),
        x_(kInputType<T>, shape.depth, rows),
        y_(OutputType<T>(shape), shape.columns, rows) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    status_ = operation_.Set(CUBLASLT_MATMUL_DESC_TRANSA, transposed);
    if (!shape.has_bias || status_ != CUBLAS_STATUS_SUCCESS) return;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    status_ = operation_.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (status_ == CUBLAS_STATUS_SUCCESS) {
      status_ = operation_.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    }
  }

  // Of the descriptors.
  cublasStatus_t status() const { return status_; }

  cublasStatus_t Propose(cublasLtHandle_t handle, const MatmulPreference& preference, int wanted,
                         cublasLtMatmulHeuristicResult_t* results, int* found) const {
    return cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), weight_.get(), x_.get(), y_.get(),
                                          y_.get(), preference.get(), wanted, results, found);
  }

  bool Accepts(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, size_t workspace_bytes) const {
    cublasLtMatmulHeuristicResult_t result;
    return status_ == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatmulAlgoCheck(handle, operation_.get(), weight_.get(), x_.get(), y_.get(), y_.get(),
                                   &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= workspace_bytes;
  }

  cublasStatus_t Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                     CublasWorkspace workspace, cudaStream_t stream) const {
    if (status_ != CUBLAS_STATUS_SUCCESS) return status_;
    const float one = 1.0f;
    const void* const residual = operands_.residual == nullptr ? operands_.y : operands_.residual;
    return cublasLtMatmul(handle, operation_.get(), &one, operands_.weight, weight_.get(), operands_.x,
                          x_.get(), &residual_factor_, residual, y_.get(), operands_.y, y_.get(), &algorithm,
                          workspace.memory, workspace.bytes, stream);
  }

 private:
  LinearOperandsOf<T> operands_;
  float residual_factor_;
  MatmulDescriptor operation_;
  MatrixLayout weight_, x_, y_;
  cublasStatus_t status_;
};

cublasStatus_t SetPreference(CublasWorkspace workspace, DepthSplit split, MatmulPreference& preference) {
  cublasStatus_t status = preference.Set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace.bytes);
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    if (status == CUBLAS_STATUS_SUCCESS) status = preference.Set(operand, kAlignment);
  }
  // Parts are added in float32, in the workspace: added in y they would be rounded more than once.
  const uint32_t schemes =
      split == DepthSplit::kNever ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = preference.Set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  }
  return status;
}

// Two events, destroyed with their owner.
class Stopwatch {
 public:
  Stopwatch() { ok_ = cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }

  bool Begin(cudaStream_t stream) { return ok_ && cudaEventRecord(begin_, stream) == cudaSuccess; }
  // Waits for the device.
  bool End(cudaStream_t stream, float& milliseconds) {
    return cudaEventRecord(end_, stream) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess &&
           cudaEventElapsedTime(&milliseconds, begin_, end_) == cudaSuccess;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  bool ok_ = false;
};

}  // namespace

template <typename T>
cublasStatus_t LinearPlansOf<T>::Prepare(const LinearShape& shape, const LinearOperandsOf<T>& operands,
                                         CublasWorkspace evicted, cudaStream_t stream) {
  if (choices_.contains(shape)) return CUBLAS_STATUS_SUCCESS;
  if (shape.has_bias && shape.output == LinearOutput::kFloat32) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (kInputType<T> == CUDA_R_32F && shape.output != LinearOutput::kFloat32)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  std::vector<Choice> choices(row_buckets_.size());
  for (int bucket = 0; bucket < std::ssize(choices); ++bucket) {
    const cublasStatus_t status = Choose(shape, bucket, operands, evicted, stream, choices[bucket]);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  choices_.emplace(shape, std::move(choices));
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t LinearPlansOf<T>::Choose(const LinearShape& shape, int bucket,
                                        const LinearOperandsOf<T>& operands, CublasWorkspace evicted,
                                        cudaStream_t stream, Choice& choice) const {
  std::vector<cublasLtMatmulHeuristicResult_t> proposals;
  cublasStatus_t status = Propose(shape, bucket, operands, proposals);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const Multiplication<T> fewest(shape, FirstRowsOfBucket(bucket, row_buckets_), operands);
  bool chosen = false;
  for (const cublasLtMatmulHeuristicResult_t& proposal : proposals) {
    if (!fewest.Accepts(handle_, proposal.algo, workspace_.bytes)) continue;
    Choice measured{proposal.algo};
    if (search_.runs == 0) {
      choice = measured;
      return CUBLAS_STATUS_SUCCESS;
    }
    status = Measure(shape, row_buckets_[bucket], operands, evicted, stream, measured);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!chosen || measured.seconds < choice.seconds) choice = measured;
    chosen = true;
  }
  return chosen ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

template <typename T>
cublasStatus_t LinearPlansOf<T>::Propose(const LinearShape& shape, int bucket,
                                         const LinearOperandsOf<T>& operands,
                                         std::vector<cublasLtMatmulHeuristicResult_t>& proposals) const {
  const Multiplication<T> most(shape, row_buckets_[bucket], operands);
  MatmulPreference preference;
  cublasStatus_t status = most.status();
  // Where parts are added by a kernel of their own, cuBLASLt adds the bias to what that kernel has rounded already.
  const DepthSplit split = shape.has_bias ? DepthSplit::kNever : split_;
  if (status == CUBLAS_STATUS_SUCCESS) status = SetPreference(workspace_, split, preference);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  int found = 0;
  proposals.resize(search_.proposals_max);
  status = most.Propose(handle_, preference, search_.proposals_max, proposals.data(), &found);
  proposals.resize(status == CUBLAS_STATUS_SUCCESS ? found : 0);
  std::erase_if(proposals, [](const auto& proposal) { return proposal.state != CUBLAS_STATUS_SUCCESS; });
  return status;
}

template <typename T>
cublasStatus_t LinearPlansOf<T>::Measure(const LinearShape& shape, int64_t rows,
                                         const LinearOperandsOf<T>& operands, CublasWorkspace evicted,
                                         cudaStream_t stream, Choice& choice) const {
  const Multiplication<T> multiplication(shape, rows, operands);
  Stopwatch stopwatch;
  std::vector<float> milliseconds;
  for (int run = 0; run < search_.warm_ups + search_.runs; ++run) {
    float elapsed = 0;
    if (evicted.bytes > 0 && cudaMemsetAsync(evicted.memory, 0, evicted.bytes, stream) != cudaSuccess) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (!stopwatch.Begin(stream)) return CUBLAS_STATUS_EXECUTION_FAILED;
    const cublasStatus_t status = multiplication.Run(handle_, choice.algorithm, workspace_, stream);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!stopwatch.End(stream, elapsed)) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (run >= search_.warm_ups) milliseconds.push_back(elapsed);
  }
  const int middle = search_.runs / 2;
  std::nth_element(milliseconds.begin(), milliseconds.begin() + middle, milliseconds.end());
  choice.seconds = milliseconds[middle] * 1e-3;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t LinearPlansOf<T>::Launch(const LinearShape& shape, int64_t rows,
                                        const LinearOperandsOf<T>& operands, cudaStream_t stream) const {
  const auto found = choices_.find(shape);
  if (found == choices_.end()) return CUBLAS_STATUS_NOT_INITIALIZED;
  const int bucket = BucketOfRows(rows, row_buckets_);
  if (bucket < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return Multiplication<T>(shape, rows, operands)
      .Run(handle_, found->second[bucket].algorithm, workspace_, stream);
}

template <typename T>
double LinearPlansOf<T>::MeasuredSeconds(const LinearShape& shape, int bucket) const {
  const auto found = choices_.find(shape);
  return found == choices_.end() ? 0 : found->second.at(bucket).seconds;
}

template class LinearPlansOf<__nv_bfloat16>;
template class LinearPlansOf<__half>;
template class LinearPlansOf<float>;

}  // namespace warpsmith
