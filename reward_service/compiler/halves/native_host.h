// What the host's half of a native CUDA program is compiled with: CUDA's runtime, what nvcc adds to it on the host, and
// launches. Its device's half is a table of kernels beside it (nvrtc_main.cc), told to CUDA's runtime as nvcc's are.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_HOST_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_HOST_H_

#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmath>
#include <utility>

// The body of what stands for a kernel. No two may be folded into one, for their addresses name them.
#define WARPSMITH_STUB                   \
  asm volatile("" : : "r"(__COUNTER__)); \
  __builtin_trap();

// As crt/math_functions.hpp declares them for the host.
static inline int min(const int a, const int b) { return a < b ? a : b; }
static inline int max(const int a, const int b) { return a > b ? a : b; }
static inline unsigned int min(const unsigned int a, const unsigned int b) { return a < b ? a : b; }
static inline unsigned int max(const unsigned int a, const unsigned int b) { return a > b ? a : b; }
static inline unsigned int min(const int a, const unsigned int b) {
  return (unsigned int)a < b ? (unsigned int)a : b;
}
static inline unsigned int max(const int a, const unsigned int b) {
  return (unsigned int)a > b ? (unsigned int)a : b;
}
static inline unsigned int min(const unsigned int a, const int b) {
  return a < (unsigned int)b ? a : (unsigned int)b;
}
static inline unsigned int max(const unsigned int a, const int b) {
  return a > (unsigned int)b ? a : (unsigned int)b;
}
static inline long min(const long a, const long b) { return a < b ? a : b; }
static inline long max(const long a, const long b) { return a > b ? a : b; }
static inline unsigned long min(const unsigned long a, const unsigned long b) { return a < b ? a : b; }
static inline unsigned long max(const unsigned long a, const unsigned long b) { return a > b ? a : b; }
static inline unsigned long min(const long a, const unsigned long b) {
  return (unsigned long)a < b ? (unsigned long)a : b;
}
static inline unsigned long max(const long a, const unsigned long b) {
  return (unsigned long)a > b ? (unsigned long)a : b;
}
static inline unsigned long min(const unsigned long a, const long b) {
  return a < (unsigned long)b ? a : (unsigned long)b;
}
static inline unsigned long max(const unsigned long a, const long b) {
  return a > (unsigned long)b ? a : (unsigned long)b;
}
static inline long long min(const long long a, const long long b) { return a < b ? a : b; }
static inline long long max(const long long a, const long long b) { return a > b ? a : b; }
static inline unsigned long long min(const unsigned long long a, const unsigned long long b) {
  return a < b ? a : b;
}
static inline unsigned long long max(const unsigned long long a, const unsigned long long b) {
  return a > b ? a : b;
}
static inline unsigned long long min(const long long a, const unsigned long long b) {
  return (unsigned long long)a < b ? (unsigned long long)a : b;
}
static inline unsigned long long max(const long long a, const unsigned long long b) {
  return (unsigned long long)a > b ? (unsigned long long)a : b;
}
static inline unsigned long long min(const unsigned long long a, const long long b) {
  return a < (unsigned long long)b ? a : (unsigned long long)b;
}
static inline unsigned long long max(const unsigned long long a, const long long b) {
  return a > (unsigned long long)b ? a : (unsigned long long)b;
}
static inline float min(const float a, const float b) { return fminf(a, b); }
static inline float max(const float a, const float b) { return fmaxf(a, b); }
static inline double min(const double a, const double b) { return fmin(a, b); }
static inline double max(const double a, const double b) { return fmax(a, b); }
static inline double min(const float a, const double b) { return fmin((double)a, b); }
static inline double min(const double a, const float b) { return fmin(a, (double)b); }
static inline double max(const float a, const double b) { return fmax((double)a, b); }
static inline double max(const double a, const float b) { return fmax(a, (double)b); }

// As cuda_runtime.h declares them where nvcc reads it: of a kernel by its name.
template <class T>
static inline cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute((const void*)kernel, attribute, value);
}
template <class T>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* kernel) {
  return ::cudaFuncGetAttributes(attributes, (const void*)kernel);
}
extern "C" {
// Of the device's half: a fat binary, and each kernel's name there.
extern const unsigned long long warpsmith_fat_binary[];
extern const char* const warpsmith_kernel_names[];

void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* name, const char* device_name,
                            int num_threads, void*, void*, void*, void*, int*);
}

namespace warpsmith {

template <class... Parameters>
struct LaunchOf {
  void (*stub)(Parameters...);
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;

  void operator()(Parameters... parameters) const {
    void* addresses[sizeof...(Parameters) + 1] = {(void*)__builtin_addressof(parameters)...};
    (void)cudaLaunchKernel((const void*)stub, grid, block, addresses, shared_bytes, stream);
  }
};

// `stub<<<grid, block, shared_bytes, stream>>>`.
template <class... Parameters>
LaunchOf<Parameters...> Launch(void (*stub)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes = 0,
                               cudaStream_t stream = 0) {
  return {stub, grid, block, shared_bytes, stream};
}

template <class... Parameters>
const char* AddressOf(void (*stub)(Parameters...)) {
  return (const char*)stub;
}

struct FatBinary {
  int magic = 0x466243b1;
  int version = 1;
  const unsigned long long* data = warpsmith_fat_binary;
  void* unused = nullptr;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_HOST_H_
