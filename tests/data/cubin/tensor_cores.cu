// Products on tensor cores: WMMA everywhere, mma.sync by element type, and what each architecture alone has.
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

#if !defined(__CUDA_ARCH__)
#define ARCHITECTURE 0
#else
#define ARCHITECTURE __CUDA_ARCH__
#endif

__global__ void half_product(float* c, const __half* a, const __half* b) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

#if ARCHITECTURE >= 800
__global__ void other_products(int* words, double* doubles, const uint32_t* a, const uint32_t* b) {
  int w0 = 0, w1 = 0, w2 = 0, w3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(w0), "+r"(w1), "+r"(w2), "+r"(w3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#if ARCHITECTURE < 1000  // done by a function without tensor cores from there on
  asm volatile(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(w0), "+r"(w1), "+r"(w2), "+r"(w3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
  words[0] = w0 + w1 + w2 + w3;
  double d0 = 0, d1 = 0;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(d0), "+d"(d1)
               : "d"(doubles[0]), "d"(doubles[1]));
  doubles[0] = d0 + d1;
}
#endif

#if ARCHITECTURE == 890 || ARCHITECTURE == 1200
__global__ void eight_bit_product(float* c, const uint32_t* a, const uint32_t* b) {
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  c[0] = c0 + c1 + c2 + c3;
}
#endif

#if ARCHITECTURE == 1200 && defined(__CUDA_ARCH_FEAT_SM120_ALL)
__global__ void four_bit_product(float* c, const uint32_t* a, const uint32_t* b) {
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile(
      "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {0,0}, %10, {0,0};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]));
  c[0] = c0 + c1 + c2 + c3;
}
#endif

#if ARCHITECTURE == 900
__global__ void group_product(float* c, int* words, uint64_t a, uint64_t b) {
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  int w0 = 0, w1 = 0, w2 = 0, w3 = 0;
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
               : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0,%1,%2,%3}, %4, %5, 1;"
               : "+r"(w0), "+r"(w1), "+r"(w2), "+r"(w3)
               : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0,%1,%2,%3}, %4, %5, 1;"
               : "+r"(w0), "+r"(w1), "+r"(w2), "+r"(w3)
               : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
  c[0] = c0 + c1 + c2 + c3;
  words[0] = w0 + w1 + w2 + w3;
}
#endif

#if ARCHITECTURE == 1000
__global__ void fifth_generation(uint64_t a, uint64_t b, uint32_t sum, uint32_t kind) {
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %3, 0;"
      "  tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;"
      "  tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }" ::"r"(sum),
      "l"(a), "l"(b), "r"(kind));
}

struct alignas(32) Eight {
  float values[8];
};

__global__ void widest(Eight* y, const Eight* x) {
  Eight v;
  asm volatile("ld.global.v8.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
               : "=f"(v.values[0]), "=f"(v.values[1]), "=f"(v.values[2]), "=f"(v.values[3]),
                 "=f"(v.values[4]), "=f"(v.values[5]), "=f"(v.values[6]), "=f"(v.values[7])
               : "l"(x + threadIdx.x));
  for (int i = 0; i < 8; ++i) y[threadIdx.x].values[i] = v.values[i];
}
#endif
