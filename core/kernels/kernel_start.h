// When a kernel on a stream may begin.
#ifndef WARPSMITH_CORE_KERNELS_KERNEL_START_H_
#define WARPSMITH_CORE_KERNELS_KERNEL_START_H_

namespace warpsmith {

// A launch takes longer than many kernels of a decoding step, and weights can come from memory while the kernels before
// run. So kernels of a step may begin beside the one before them and wait on the device for its results.
//
// kBesideFormer asks that what the kernel's contract calls constant, as weights and index arrays, was there before the
// step's first kernel began, which is launched kAfterFormer. What else a kernel reads may come from any kernel before:
// each ends after those before it, for it waits for them on the device or began after their end.
enum class KernelStart {
  kAfterFormer,   // when all work before it on the stream has ended
  kBesideFormer,  // when all blocks of the kernel before it allow it or have ended
};

// When a product lets the next kernel begin that is launched kBesideFormer.
//
// A block that begins early has weights or pages under way while the kernels before it work, but takes their memory's
// bandwidth and room of multiprocessors: blocks that find several of one kernel on a multiprocessor begin late. So
// kAtOnce pays only where all kernels of a step have few and small blocks.
enum class NextStart {
  kAfterLoads,  // when all loads are under way; a block has a multiprocessor for itself, so that blocks spread evenly
  kAtOnce,  // when all weights are, if they have places at once, for which a block takes no more than they need
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_KERNEL_START_H_
