// Shared memory, barriers, shuffles, atomics, copies that need no register.
#include <cstdint>

template <int kTile>
__global__ void tiled(float* c, const float* a, const float* b, int n) {
  __shared__ float rows[kTile][kTile], columns[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int t = 0; t < n; t += kTile) {
    rows[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    columns[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += rows[threadIdx.y][k] * columns[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

template __global__ void tiled<8>(float*, const float*, const float*, int);

__global__ void reduced(float* sum, unsigned* maximum, const float* x, const unsigned* indices) {
  float own = x[threadIdx.x];
  for (int lane = 16; lane > 0; lane /= 2) own += __shfl_xor_sync(~0u, own, lane);
  const unsigned largest = __reduce_max_sync(~0u, indices[threadIdx.x]);
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(sum, own);
  atomicMax(maximum, largest);
}

// One of each atomic that has an opcode of its own.
__global__ void atomics(int* words, float* value, unsigned long long* longs, int** anywhere) {
  __shared__ int counts[32];
  const int old = atomicAdd(words, 1);
  atomicAdd(&counts[threadIdx.x % 32], old);
  atomicCAS(&counts[3], old, 3);
  atomicCAS(words + 4, old, 3);
  value[1] = atomicAdd(value, 1.0f);
  longs[1] = atomicExch(longs, 2);
  __syncthreads();
  int* const either = threadIdx.x > 7 ? counts : words;
  words[5] = atomicAdd(either + 1, counts[2]) + atomicCAS(anywhere[0], old, 4);
}

__global__ void copied(float4* y, const char* x) {
  __shared__ float4 staged[128];
  const auto place = static_cast<uint32_t>(__cvta_generic_to_shared(staged + threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(x + 16 * threadIdx.x)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  y[threadIdx.x] = staged[127 - threadIdx.x];
}

__global__ void copied_narrowly(float2* y, const char* x) {
  __shared__ float2 staged[128];
  const auto place = static_cast<uint32_t>(__cvta_generic_to_shared(staged + threadIdx.x));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(place), "l"(x + 8 * threadIdx.x) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(x + 4) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  y[threadIdx.x] = staged[127 - threadIdx.x];
}
