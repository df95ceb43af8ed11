#include "reward_service/referee/profile/code_origin.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "reward_service/sandbox/confinement.h"

namespace warpsmith {
namespace {

const std::string kOwnFolder = absl::StrCat(kLibraryFolder, "/");
constexpr uint64_t kKernelStart = uint64_t{1} << 63;

bool ContainsAny(absl::string_view text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return absl::StrContains(text, part); });
}

// Opcodes of map 0F whose vector forms come packed and scalar, told apart by the mandatory prefix.
bool HasScalarForm(uint8_t opcode) {
  return opcode == 0x10 || opcode == 0x11 || opcode == 0x51 || (opcode >= 0x58 && opcode <= 0x5F) ||
         opcode == 0xC2 || (opcode >= 0x2A && opcode <= 0x2F) || opcode == 0x5A || opcode == 0x52 ||
         opcode == 0x53;
}

// Opcodes of map 0F with which scalar code copies and converts registers, changes signs and clears: of 128
// bits, these say nothing about the program.
bool IsOfScalarCode(uint8_t opcode) {
  return (opcode >= 0x10 && opcode <= 0x17) || opcode == 0x28 || opcode == 0x29 ||  // moves and unpacks
         (opcode >= 0x54 && opcode <= 0x57) || opcode == 0x5A ||                    // bits, conversions
         opcode == 0x6F || opcode == 0x7F || opcode == 0xD6 ||                      // moves of integers
         opcode == 0xDB || opcode == 0xDF || opcode == 0xEB || opcode == 0xEF;      // bits of integers
}

// Legacy SSE: [66|F2|F3] [REX] 0F opcode.
int LegacyBits(const std::array<uint8_t, 16>& bytes) {
  size_t at = 0;
  bool scalar = false;
  bool operand_prefix = false;
  while (at < 4 && (bytes[at] == 0x66 || bytes[at] == 0xF2 || bytes[at] == 0xF3)) {
    scalar = scalar || bytes[at] != 0x66;
    operand_prefix = operand_prefix || bytes[at] == 0x66;
    ++at;
  }
  if ((bytes[at] & 0xF0) == 0x40) ++at;
  if (bytes[at] != 0x0F) return 0;
  const uint8_t opcode = bytes[at + 1];
  if ((scalar && HasScalarForm(opcode)) || IsOfScalarCode(opcode)) return 0;
  const bool real = (opcode >= 0x51 && opcode <= 0x5F) || opcode == 0xC6;
  const bool integer = operand_prefix && ((opcode >= 0x60 && opcode <= 0x76) || opcode >= 0xD0);
  return real || integer ? 128 : 0;
}

// Opcodes of map 0F38 that are fused multiply-adds; odd ones are scalar.
bool IsScalarFusedMultiply(int map, uint8_t opcode) {
  const uint8_t low = opcode & 0x0F;
  return map == 2 && (opcode >> 4) >= 9 && (opcode >> 4) <= 0xB && low >= 9 && low % 2 == 1;
}

int EncodedBits(int map, int prefix, uint8_t opcode, int length) {
  if (map == 1 && prefix >= 2 && HasScalarForm(opcode)) return 0;
  if (IsScalarFusedMultiply(map, opcode)) return 0;
  if (length == 0 && map == 1 && IsOfScalarCode(opcode)) return 0;
  // BMI1 and BMI2 work on general registers; roundss and roundsd have an opcode of their own.
  if ((map == 2 && opcode >= 0xF2 && opcode <= 0xF7) ||
      (map == 3 && (opcode == 0xF0 || opcode == 0x0A || opcode == 0x0B)))
    return 0;
  // vzeroupper, moves between vector and general registers, ucomis: no packed work.
  if (map == 1 && (opcode == 0x77 || opcode == 0x6E || opcode == 0x7E || opcode == 0x2E || opcode == 0x2F))
    return 0;
  return 128 << length;
}

}  // namespace

CodeOrigin OriginOfPath(absl::string_view path) {
  if (absl::StartsWith(path, kOwnFolder)) return CodeOrigin::kOwn;
  if (path == "[vdso]" || path == "[vsyscall]") return CodeOrigin::kLibc;
  if (path.empty() || path[0] != '/' || absl::StartsWith(path, "/memfd:")) return CodeOrigin::kLibrary;
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  // Sizes and addresses of tensors: a loop that asks for them at every element has others do no work of its.
  if (ContainsAny(name, {"libc10", "libwarpsmith_facade"})) return CodeOrigin::kOther;
  if (absl::StartsWith(name, "libmvec")) return CodeOrigin::kVectorMath;
  for (const char* prefix :
       {"libc.", "libc-", "libm.", "libm-", "libstdc++", "libgomp", "libgcc_s", "ld-linux"}) {
    if (absl::StartsWith(name, prefix)) return CodeOrigin::kLibc;
  }
  if (ContainsAny(path, {"blas", "libmkl", "lapack", "libdnnl", "libatlas", "libtorch", "libshm",
                         "_C.cpython", "/torch/", "/site-packages/", "/dist-packages/"})) {
    return CodeOrigin::kLibrary;
  }
  return CodeOrigin::kOther;
}

CodeMap CodeMap::Read(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/maps"));
  std::stringstream text;
  text << file.rdbuf();
  return Parse(text.str());
}

CodeMap CodeMap::Parse(absl::string_view maps) {
  CodeMap map;
  for (const absl::string_view line : absl::StrSplit(maps, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    if (fields.size() < 5 || fields[1].size() < 3 || fields[1][2] != 'x') continue;
    const std::vector<std::string> bounds = absl::StrSplit(fields[0], '-');
    if (bounds.size() != 2) continue;
    absl::string_view path = fields.size() > 5 ? fields[5] : absl::string_view();
    while (!path.empty() && path.front() == ' ') path.remove_prefix(1);
    map.ranges_.push_back({std::strtoull(bounds[0].c_str(), nullptr, 16),
                           std::strtoull(bounds[1].c_str(), nullptr, 16), OriginOfPath(path)});
  }
  return map;
}

CodeOrigin CodeMap::OriginOf(uint64_t address) const {
  if (address >= kKernelStart) return CodeOrigin::kKernel;
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](uint64_t value, const Range& range) { return value < range.start; });
  if (after == ranges_.begin()) return CodeOrigin::kOther;
  const Range& range = *std::prev(after);
  return address < range.end ? range.origin : CodeOrigin::kOther;
}

int VectorBits(const std::array<uint8_t, 16>& bytes) {
  switch (bytes[0]) {
    case 0xC5:  // two-byte VEX: R vvvv L pp
      return EncodedBits(1, bytes[1] & 3, bytes[2], (bytes[1] >> 2) & 1);
    case 0xC4:  // three-byte VEX: RXB mmmmm, W vvvv L pp
      return EncodedBits(bytes[1] & 0x1F, bytes[2] & 3, bytes[3], (bytes[2] >> 2) & 1);
    case 0x62:  // EVEX: payload of three bytes; L'L in bits 6 and 5 of the third
      return EncodedBits(bytes[1] & 7, bytes[2] & 3, bytes[4], std::min((bytes[3] >> 5) & 3, 2));
    default:
      return LegacyBits(bytes);
  }
}

}  // namespace warpsmith
