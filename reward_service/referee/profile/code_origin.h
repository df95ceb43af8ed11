// Whose code an instruction is, and how wide it computes: read from outside, from a process's mappings and
// bytes.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_CODE_ORIGIN_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_CODE_ORIGIN_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace warpsmith {

enum class CodeOrigin { kOwn, kLibrary, kLibc, kVectorMath, kKernel, kOther };
constexpr int kNumCodeOrigins = 6;

// By the file that an executable mapping comes from. Own is what was compiled from the candidate's source, in
// the folder where nothing else can be; libraries are BLAS and those of Python packages, with code that was
// made or brought along at run time, in memory of no file or in files elsewhere; libc covers the C,
// C++, mathematics and OpenMP libraries; vector math is libmvec, whose functions take vectors, so that only code with
// vectors calls them; other is the interpreter, the jail's runner, and what only leads to
// tensors.
CodeOrigin OriginOfPath(absl::string_view path);

// The executable mappings of a process at one moment.
class CodeMap {
 public:
  // Empty when the process is gone.
  static CodeMap Read(pid_t pid);
  // From the text of /proc/PID/maps.
  static CodeMap Parse(absl::string_view maps);

  // Other, where nothing lies: a word of a stack need not be an address.
  CodeOrigin OriginOf(uint64_t address) const;

 private:
  struct Range {
    uint64_t start;
    uint64_t end;
    CodeOrigin origin;
  };
  std::vector<Range> ranges_;  // sorted
};

// Bits of packed floating-point or integer arithmetic that the x86-64 instruction at `bytes` does: 128, 256
// or 512; 0 for scalar ones, for moves and bitwise operations of 128 bits, which are scalar code's too, and
// for what is not recognised. Looks at prefixes and opcode (Intel SDM volume 2, chapter 2).
int VectorBits(const std::array<uint8_t, 16>& bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_CODE_ORIGIN_H_
