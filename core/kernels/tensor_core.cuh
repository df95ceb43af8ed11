// Instructions of a warp that CUDA C++ has no words for: products of tiles, loads of matrices from shared memory,
// copies into it that run beside the arithmetic. Compute capability 8.0 and later.
#ifndef WARPSMITH_CORE_KERNELS_TENSOR_CORE_CUH_
#define WARPSMITH_CORE_KERNELS_TENSOR_CORE_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace warpsmith {

// What instructions call a type of 16 bits.
template <typename T>
struct InstructionType;
template <>
struct InstructionType<__nv_bfloat16> {
  static constexpr char kName[] = "bf16";
};
template <>
struct InstructionType<__half> {
  static constexpr char kName[] = "f16";
};

// Shared memory as instructions address it.
__device__ inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// sums += a b for a [16, 16] and b [16, 8] of T, bfloat16 or float16, sums [16, 8] of float32. With g = lane / 4 and t
// = lane % 4: a holds (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), each a pair of columns; b0 holds rows 2t and
// 2t + 1 of column g, b1 those 8 further; sums holds (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <typename T>
__device__ inline void MultiplyTiles(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.%10.%10.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "C"(InstructionType<T>::kName));
}

// Four matrices of 8 rows of 16 bytes; lane l gives the address of row l % 8 of matrix l / 8. Of matrix i, m[i] gets
// row lane / 4, columns 2 (lane % 4) and the next.
__device__ inline void LoadMatrices(uint32_t address, uint32_t (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

// Likewise, but m[i] gets rows 2 (lane % 4) and the next of column lane / 4.
__device__ inline void LoadMatricesTransposed(uint32_t address, uint32_t (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

// 16 bytes to shared memory, past the first cache; zeros instead, and nothing is read, where `present` is false.
__device__ inline void CopyAsync(uint32_t to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
               :
               : "r"(to), "l"(from), "r"(present ? 16 : 0)
               : "memory");
}

// This thread's copies since the last call become one group, perhaps an empty one.
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

// Until at most the last kPending groups of this thread are under way.
template <int kPending>
__device__ inline void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;\n" : : "n"(kPending) : "memory");
}

// 2^x within 2 units of the last place; exactly 1 at 0, and 0 at -infinity.
__device__ inline float ExponentialOf2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TENSOR_CORE_CUH_
