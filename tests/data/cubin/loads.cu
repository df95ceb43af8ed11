// Loads of each width from global memory; names in an anonymous namespace and of templates.
#include <cuda_fp16.h>

__device__ int Index() { return blockIdx.x * blockDim.x + threadIdx.x; }

namespace {

__global__ void scalar(float* y, const float* x, int n) {
  const int i = Index();
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}

}  // namespace

__global__ void vectorised(float4* y, const float4* __restrict__ x, int n) {
  const int i = Index();
  if (i >= n) return;
  float4 value = x[i];
  value.x += 1;
  y[i] = value;
}

namespace halves {

template <typename T, int kTimes>
__global__ void scaled(T* y, const T* x, int n) {
  const int i = Index();
  if (i < n) y[i] = x[i] * x[i] + __float2half(kTimes);
}

template __global__ void scaled<__half, 3>(__half*, const __half*, int);

}  // namespace halves

extern "C" __global__ void bytes(unsigned char* y, const unsigned char* x) {
  y[threadIdx.x] = x[threadIdx.x] + 1;
}

void Launch(float* y, const float* x, int n) { scalar<<<n, 256>>>(y, x, n); }
