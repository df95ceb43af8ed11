// Hopper's own instructions, one function each: barriers in shared memory, copies of tiles by the tensor memory
// accelerator, products of warpgroups, and clusters. Source: PTX ISA 9.0.
#ifndef WARPSMITH_CORE_KERNELS_HOPPER_CUH_
#define WARPSMITH_CORE_KERNELS_HOPPER_CUH_

#include <cuda.h>

#include <cstdint>

namespace warpsmith {

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier in shared memory, for `arrivals` arrivals a phase.
__device__ inline void InitBarrier(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(arrivals));
}

// Makes barriers that were set up visible to the copy engine.
__device__ inline void FenceBarriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void Arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(barrier)) : "memory");
}

// Arrives; the phase ends when `bytes` have come, too.
__device__ inline void ArriveExpecting(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
               "r"(bytes)
               : "memory");
}

// Waits for the end of the phase of this parity.
__device__ inline void Wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(SharedAddress(barrier)),
      "r"(parity)
      : "memory");
}

// Brings `map` to the copy engine's cache.
__device__ inline void PrefetchMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

enum class CachePolicy : uint64_t { kEvictFirst = 0x12F0000000000000, kEvictNormal = 0x1000000000000000 };

// Starts the copy of the tile at {x, y} of `map`, whose bytes count towards `barrier`.
__device__ inline void CopyTile(void* to, const CUtensorMap* map, int32_t x, int32_t y, uint64_t* barrier,
                                CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(SharedAddress(to)),
      "l"(map), "r"(x), "r"(y), "r"(SharedAddress(barrier)), "l"(static_cast<uint64_t>(policy))
      : "memory");
}

// What a product reads: rows of 128 bytes, swizzled by the copy engine in atoms of eight rows. Add 2 for the next 32
// bytes of each row.
__device__ inline uint64_t TileDescriptor(const void* tile) {
  constexpr uint64_t kSwizzle128Bytes = 1ull << 62, kAtomBytes = 1024;
  return kSwizzle128Bytes | kAtomBytes >> 4 << 32 | 1ull << 16 | (SharedAddress(tile) & 0x3FFFF) >> 4;
}

__device__ inline void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void CommitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most kPending committed groups of this warpgroup run.
template <int kPending>
__device__ inline void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// sums[64, kColumns] = a[64, 16] b[kColumns, 16]^T in bfloat16 by a warpgroup, both from shared memory; `adds`: added
// to what sums holds. Of 8 columns lane l of warp w has, in this order, row 16 w + l / 4 of columns 2 (l % 4) and
// 2 (l % 4) + 1, then row 16 w + l / 4 + 8 of both.
template <int kColumns>
__device__ inline void Product(float (&sums)[kColumns / 2], uint64_t a, uint64_t b, bool adds);

template <>
__device__ inline void Product<8>(float (&d)[4], uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, adds, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b), "r"(static_cast<int32_t>(adds)));
}

template <>
__device__ inline void Product<16>(float (&d)[8], uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, adds, "
      "1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "l"(a), "l"(b), "r"(static_cast<int32_t>(adds)));
}

template <>
__device__ inline void Product<32>(float (&d)[16], uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, adds, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b), "r"(static_cast<int32_t>(adds)));
}

template <>
__device__ inline void Product<64>(float (&d)[32], uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, adds, 1, "
      "1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(static_cast<int32_t>(adds)));
}

template <>
__device__ inline void Product<128>(float (&d)[64], uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, adds, 1, "
      "1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(static_cast<int32_t>(adds)));
}

__device__ inline uint32_t ClusterRank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The two halves of SyncCluster.
__device__ inline void ArriveAtCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void WaitForCluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline void SyncCluster() {
  ArriveAtCluster();
  WaitForCluster();
}

// The address of another block's shared memory, where `pointer` lies in ours.
__device__ inline uint32_t AddressInBlock(const void* pointer, uint32_t rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(SharedAddress(pointer)), "r"(rank));
  return address;
}

// To another block's shared memory, which has begun and does not end before SyncCluster.
__device__ inline void StoreInBlock(uint64_t* pointer, uint64_t value, uint32_t rank) {
  asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(AddressInBlock(pointer, rank)), "l"(value)
               : "memory");
}

// Four floats of another block's shared memory.
__device__ inline float4 LoadOfBlock(const float* pointer, uint32_t rank) {
  float4 value;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(AddressInBlock(pointer, rank))
               : "memory");
  return value;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_HOPPER_CUH_
