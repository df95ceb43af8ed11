// Hopper's own instructions, one function each: barriers in shared memory, copies of tiles by the tensor memory
// accelerator, clusters, and registers of warpgroups. Source: PTX ISA 9.0.
#ifndef WARPSMITH_CORE_KERNELS_HOPPER_CUH_
#define WARPSMITH_CORE_KERNELS_HOPPER_CUH_

#include <cuda.h>

#include <cstdint>

#include "core/kernels/tensor_core.cuh"

namespace warpsmith {

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

// Likewise, where threads of other blocks send what comes by the end of the phase (SendToBlock): only an acquire at the
// cluster's scope makes their writes visible to the caller. Wait acquires at the block's, enough for copies and for
// writes of the block's own threads. It also invalidates the multiprocessor's cache, so it is not for a loop.
__device__ inline void WaitForSent(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
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

// Likewise, but the tile comes to the same place of each block of the cluster whose bit is set in `blocks`, and counts
// towards the barrier at the same place of that block.
__device__ inline void CopyTileToBlocks(void* to, const CUtensorMap* map, int32_t x, int32_t y,
                                        uint64_t* barrier, uint32_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(SharedAddress(to)),
      "l"(map), "r"(x), "r"(y), "r"(SharedAddress(barrier)), "h"(static_cast<uint16_t>(blocks))
      : "memory");
}

// For a map of three dimensions: the tiles from {0, y, z}.
__device__ inline void CopyTiles(void* to, const CUtensorMap* map, int32_t y, int32_t z, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(SharedAddress(to)),
      "l"(map), "r"(0), "r"(y), "r"(z), "r"(SharedAddress(barrier))
      : "memory");
}

// CopyTile and CopyTileToBlocks for a map of five dimensions; the tile is at {x, 0, 0, 0, y}.
__device__ inline void CopyBlocks(void* to, const CUtensorMap* map, int32_t x, int32_t y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %3, %3, %4}], [%5];" ::"r"(SharedAddress(to)),
      "l"(map), "r"(x), "r"(0), "r"(y), "r"(SharedAddress(barrier))
      : "memory");
}
__device__ inline void CopyBlocksToBlocks(void* to, const CUtensorMap* map, int32_t x, int32_t y,
                                          uint64_t* barrier, uint32_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %3, %3, %4}], [%5], %6;" ::"r"(SharedAddress(to)),
      "l"(map), "r"(x), "r"(0), "r"(y), "r"(SharedAddress(barrier)), "h"(static_cast<uint16_t>(blocks))
      : "memory");
}

// Makes this thread's writes to shared memory visible to copies that start once it has told so.
__device__ inline void FenceForCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Starts the copy of a tile in shared memory to {x, y} of `map`; what lies outside is not written. CommitStores makes
// those that this thread started one group.
__device__ inline void StoreTile(const CUtensorMap* map, int32_t x, int32_t y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(x), "r"(y), "r"(SharedAddress(from))
               : "memory");
}
__device__ inline void CommitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until the stores of this thread have read shared memory, or have been written.
__device__ inline void WaitForStoresToRead() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ inline void WaitForStores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Stores what LoadMatricesTransposed would load from the same addresses.
__device__ inline void StoreMatricesTransposed(uint32_t address, const uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
               "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}
// Two matrices; lanes from 16 on give no address.
__device__ inline void StoreMatricesTransposed(uint32_t address, const uint32_t (&m)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};\n" ::"r"(address), "r"(m[0]),
               "r"(m[1])
               : "memory");
}

// One matrix; lanes from 8 on give no address.
__device__ inline void StoreMatrixTransposed(uint32_t address, uint32_t m) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};\n" ::"r"(address), "r"(m)
               : "memory");
}
// What LoadMatrices would load.
__device__ inline void StoreMatrices(uint32_t address, const uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(m[0]),
               "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}

// A warpgroup gives registers back or waits for more, up to kCount for each thread, a multiple of 8.
template <int kCount>
__device__ inline void LowerRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ inline void RaiseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// True for one lane of a warp, all of whose lanes call this. The compiler knows that a single lane goes on and can use
// uniform registers, which copies of tiles need, without a loop over lanes.
__device__ inline bool IsElected() {
  uint32_t elected;
  asm volatile("{\n.reg .pred elected;\nelect.sync _|elected, 0xFFFFFFFF;\nselp.u32 %0, 1, 0, elected;\n}"
               : "=r"(elected));
  return elected != 0;
}

__device__ inline uint32_t ClusterRank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The halves of SyncCluster: what threads of the cluster wrote before they arrived is visible after the wait.
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

// Without that promise, for which ArriveAtCluster waits until all writes of the thread are visible to the device: where
// blocks only tell each other that they run, have set up barriers (FenceBarriers) or need no more.
__device__ inline void MeetCluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Where `pointer` lies in our shared memory, the same place of another block's, for ordinary loads.
template <typename T>
__device__ inline T* PlaceInBlock(T* pointer, uint32_t rank) {
  uint64_t place;
  asm("mapa.u64 %0, %1, %2;" : "=l"(place) : "l"(reinterpret_cast<uint64_t>(pointer)), "r"(rank));
  return reinterpret_cast<T*>(place);
}

// Reads what every layer of a step reads: weights that stream through the cache do not push it out.
__device__ inline int32_t LoadKept(const int32_t* from) {
  constexpr uint64_t kEvictLast = 0x14F0000000000000;
  int32_t value;
  asm("ld.global.L2::cache_hint.b32 %0, [%1], %2;" : "=r"(value) : "l"(from), "l"(kEvictLast));
  return value;
}

// The address of another block's shared memory, where `pointer` lies in ours.
__device__ inline uint32_t AddressInBlock(const void* pointer, uint32_t rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(SharedAddress(pointer)), "r"(rank));
  return address;
}

// At the barrier at `address` of a block of the cluster, from AddressInBlock. Tells that this thread has read. Orders
// no writes to other blocks' memory: that would make each arrival wait for all that this thread has written.
__device__ inline void ArriveInBlock(uint32_t address) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}

// To another block's shared memory, which has begun and does not end before SyncCluster.
__device__ inline void StoreInBlock(uint64_t* pointer, uint64_t value, uint32_t rank) {
  asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(AddressInBlock(pointer, rank)), "l"(value)
               : "memory");
}

// Sends a float to another block's shared memory, where its four bytes count towards a barrier. Both addresses are of
// that block, from AddressInBlock.
__device__ inline void SendToBlock(uint32_t address, float value, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address),
               "r"(__float_as_uint(value)), "r"(barrier)
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
