// Local memory for want of registers (compiled with -maxrregcount=24), and for an array that is indexed.
__global__ void spilled(float* y, const float* x, int n) {
  float values[24];
#pragma unroll
  for (int i = 0; i < 24; ++i) values[i] = x[i * n + threadIdx.x];
#pragma unroll
  for (int i = 0; i < 24; ++i) y[i * n + threadIdx.x] = values[i] * values[(i * 7 + 3) % 24];
}

__global__ void indexed(float* y, const float* x, const int* indices) {
  float values[8];
#pragma unroll 1
  for (int i = 0; i < 8; ++i) values[i] = x[i * 32 + threadIdx.x];
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) sum += values[indices[i] % 8];
  y[threadIdx.x] = sum;
}
