#include "core/kernels/linear_gelu_cuda.h"

#include "core/kernels/cublas_descriptors.h"

namespace warpsmith {
namespace {

// cuBLASLt counts columns first, so it sees y^T [columns, rows] = w x^T, with w [depth, columns] transposed.
cublasStatus_t DescribeOperation(const float* bias, MatmulDescriptor& operation) {
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
  cublasStatus_t status = operation.Set(CUBLASLT_MATMUL_DESC_TRANSA, transposed);
  if (status == CUBLAS_STATUS_SUCCESS) status = operation.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (status == CUBLAS_STATUS_SUCCESS) status = operation.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  return status;
}

}  // namespace

cublasStatus_t LaunchLinearGelu(cublasLtHandle_t handle, const LinearGeluShape& shape, const float* x,
                                const float* weight, const float* bias, float* y, CublasWorkspace workspace,
                                cudaStream_t stream) {
  MatmulDescriptor operation(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const MatrixLayout weight_layout(CUDA_R_32F, shape.depth, shape.columns);
  const MatrixLayout x_layout(CUDA_R_32F, shape.depth, shape.rows);
  const MatrixLayout y_layout(CUDA_R_32F, shape.columns, shape.rows);
  MatmulPreference preference;
  cublasStatus_t status = DescribeOperation(bias, operation);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = preference.Set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace.bytes);
  }
  if (status != CUBLAS_STATUS_SUCCESS) return status;

  cublasLtMatmulHeuristicResult_t algorithm;
  int found = 0;
  status =
      cublasLtMatmulAlgoGetHeuristic(handle, operation.get(), weight_layout.get(), x_layout.get(),
                                     y_layout.get(), y_layout.get(), preference.get(), 1, &algorithm, &found);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  const float one = 1.0f, zero = 0.0f;
  return cublasLtMatmul(handle, operation.get(), &one, weight, weight_layout.get(), x, x_layout.get(), &zero,
                        y, y_layout.get(), y, y_layout.get(), &algorithm.algo, workspace.memory,
                        workspace.bytes, stream);
}

}  // namespace warpsmith
