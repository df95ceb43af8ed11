// What a cubin (the ELF file that ptxas writes for one GPU architecture) says of its kernels, and emptying them. A
// program has influence on every byte of it, so nothing in it is believed: it is read within bounds or refused.
#ifndef WARPSMITH_REWARD_SERVICE_CUBIN_CUBIN_H_
#define WARPSMITH_REWARD_SERVICE_CUBIN_CUBIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/cubin/cubin_instructions.h"

namespace warpsmith {

inline constexpr size_t kCubinBytesMax = size_t{16} << 20;
inline constexpr size_t kCubinKernelsMax = 256;

// A kernel, with the functions that were compiled into it; those behind a pointer are no part of it.
struct CubinKernel {
  std::string name;                 // KernelName()
  int32_t registers = 0;            // of a thread
  int32_t stack_bytes = 0;          // of a thread, in local memory
  int32_t static_shared_bytes = 0;  // of a block, without what CUDA keeps for itself
  // Nothing where the architecture is not known.
  std::optional<InstructionFacts> instructions;
};

struct CubinFacts {
  int architecture = 0;  // 90 for sm_90 and sm_90a: the file does not tell them apart
  // The first kCubinKernelsMax, in the order of the file's symbols.
  std::vector<CubinKernel> kernels;
};

// Reads a cubin of CUDA 12 or 13. INVALID_ARGUMENT with the reason when it is none, is larger than
// kCubinBytesMax, or contradicts itself. Takes time in proportion to its size.
absl::StatusOr<CubinFacts> ReadCubin(std::string_view bytes);

// Makes every kernel return at once: writes EXIT over its first instruction, in each cubin that lies uncompressed in
// `bytes`, a library's file or a cubin. Returns the number of kernels. A malformed cubin, which no driver takes, is
// left as far as it cannot be read.
int EmptyKernels(std::string* bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_CUBIN_CUBIN_H_
