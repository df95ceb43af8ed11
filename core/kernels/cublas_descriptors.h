// Owners of cuBLASLt's descriptors. Creation can fail for lack of host memory only; get() is null then and
// every use of it answers CUBLAS_STATUS_INVALID_VALUE.
#ifndef WARPSMITH_CORE_KERNELS_CUBLAS_DESCRIPTORS_H_
#define WARPSMITH_CORE_KERNELS_CUBLAS_DESCRIPTORS_H_

#include <cublasLt.h>

#include <cstdint>

namespace warpsmith {

class MatmulDescriptor {
 public:
  MatmulDescriptor(cublasComputeType_t compute, cudaDataType_t scale) {
    if (cublasLtMatmulDescCreate(&descriptor_, compute, scale) != CUBLAS_STATUS_SUCCESS)
      descriptor_ = nullptr;
  }
  MatmulDescriptor(const MatmulDescriptor&) = delete;
  MatmulDescriptor& operator=(const MatmulDescriptor&) = delete;
  ~MatmulDescriptor() {
    if (descriptor_ != nullptr) cublasLtMatmulDescDestroy(descriptor_);
  }

  template <typename Value>
  cublasStatus_t Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    return cublasLtMatmulDescSetAttribute(descriptor_, attribute, &value, sizeof(value));
  }
  cublasLtMatmulDesc_t get() const { return descriptor_; }

 private:
  cublasLtMatmulDesc_t descriptor_ = nullptr;
};

// A dense column-major matrix.
class MatrixLayout {
 public:
  MatrixLayout(cudaDataType_t type, int64_t rows, int64_t columns) {
    if (cublasLtMatrixLayoutCreate(&layout_, type, rows, columns, rows) != CUBLAS_STATUS_SUCCESS)
      layout_ = nullptr;
  }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  ~MatrixLayout() {
    if (layout_ != nullptr) cublasLtMatrixLayoutDestroy(layout_);
  }

  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class MatmulPreference {
 public:
  MatmulPreference() {
    if (cublasLtMatmulPreferenceCreate(&preference_) != CUBLAS_STATUS_SUCCESS) preference_ = nullptr;
  }
  MatmulPreference(const MatmulPreference&) = delete;
  MatmulPreference& operator=(const MatmulPreference&) = delete;
  ~MatmulPreference() {
    if (preference_ != nullptr) cublasLtMatmulPreferenceDestroy(preference_);
  }

  template <typename Value>
  cublasStatus_t Set(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    return cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value));
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_CUBLAS_DESCRIPTORS_H_
