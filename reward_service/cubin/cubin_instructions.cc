#include "reward_service/cubin/cubin_instructions.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace warpsmith {
namespace {

// The opcode is the lowest 9 bits; 3 bits above it say which operands are constants. The table is made
// from listings of `nvdisasm -c -hex`, and holds for the families in which an instruction was seen.
constexpr uint64_t kOpcodeMask = 0x1ff;

enum Family : uint8_t {
  kAmpere = 1,               // sm_80, 86, 87 and Ada's 89
  kHopper = 2,               // sm_90
  kDatacenterBlackwell = 4,  // sm_100
  kBlackwell = 8,            // sm_120, 121
};
constexpr uint8_t kEvery = kAmpere | kHopper | kDatacenterBlackwell | kBlackwell;
constexpr uint8_t kSinceHopper = kHopper | kDatacenterBlackwell | kBlackwell;

enum class Kind : uint8_t {
  kOther,
  kPadding,
  kLoad,
  kWidestLoad,
  kLocalAccess,
  kTensorCore,
  kBarrier,
  kAtomic,
  kShuffle,
  kSmallCopy,
  kBulkCopy,
};

struct Opcode {
  uint16_t value;
  Kind kind;
  uint8_t families;
};

constexpr Opcode kOpcodes[] = {
    {0x118, Kind::kPadding, kEvery},                                // NOP
    {0x180, Kind::kLoad, kEvery},                                   // LD: of a generic address
    {0x181, Kind::kLoad, kEvery},                                   // LDG
    {0x17e, Kind::kWidestLoad, kDatacenterBlackwell | kBlackwell},  // LDG.256
    {0x183, Kind::kLocalAccess, kEvery},                            // LDL
    {0x187, Kind::kLocalAccess, kEvery},                            // STL
    {0x037, Kind::kTensorCore, kEvery},                             // IMMA
    {0x03c, Kind::kTensorCore, kEvery},                             // HMMA
    {0x03d, Kind::kTensorCore, kAmpere | kHopper},                  // BMMA
    {0x03f, Kind::kTensorCore, kEvery},                             // DMMA
    {0x07a, Kind::kTensorCore, kAmpere | kBlackwell},               // QMMA: 8 bits, sm_89 and 120
    {0x07f, Kind::kTensorCore, kBlackwell},                         // OMMA: 4 bits
    {0x1f0, Kind::kTensorCore, kHopper},                            // HGMMA
    {0x1f1, Kind::kTensorCore, kHopper},                            // IGMMA
    {0x1f2, Kind::kTensorCore, kHopper},                            // BGMMA
    {0x1f3, Kind::kTensorCore, kHopper},                            // QGMMA
    {0x1ea, Kind::kTensorCore, kDatacenterBlackwell},               // UTCHMMA, UTCQMMA, UTCIMMA, UTCOMMA
    {0x11d, Kind::kBarrier, kEvery},                                // BAR
    {0x18a, Kind::kAtomic, kEvery},                                 // ATOM: of a generic address
    {0x18b, Kind::kAtomic, kEvery},                                 // ATOM.CAS
    {0x18c, Kind::kAtomic, kEvery},                                 // ATOMS
    {0x18d, Kind::kAtomic, kEvery},                                 // ATOMS.CAS
    {0x18e, Kind::kAtomic, kEvery},                                 // RED, REDG
    {0x1a2, Kind::kAtomic, kSinceHopper},                           // ATOM on floating point
    {0x1a3, Kind::kAtomic, kSinceHopper},                           // ATOMG on floating point
    {0x1a6, Kind::kAtomic, kSinceHopper},                           // REDG on floating point
    {0x1a8, Kind::kAtomic, kEvery},                                 // ATOMG
    {0x1a9, Kind::kAtomic, kEvery},                                 // ATOMG.CAS
    {0x189, Kind::kShuffle, kEvery},                                // SHFL
    {0x1c4, Kind::kShuffle, kEvery},                                // REDUX
    {0x0cc, Kind::kShuffle, kDatacenterBlackwell},                  // CREDUX
    {0x1ae, Kind::kSmallCopy, kEvery},                              // LDGSTS
    {0x1b4, Kind::kBulkCopy, kSinceHopper},                         // UTMALDG
    {0x1b5, Kind::kBulkCopy, kSinceHopper},                         // UTMASTG
    {0x1b6, Kind::kBulkCopy, kSinceHopper},                         // UTMAREDG
    {0x1ba, Kind::kBulkCopy, kSinceHopper},                         // UBLKCP
    {0x1bb, Kind::kBulkCopy, kSinceHopper},                         // UBLKRED
};

using Kinds = std::array<Kind, kOpcodeMask + 1>;

constexpr Kinds KindsOf(Family family) {
  Kinds kinds{};
  for (const Opcode& opcode : kOpcodes) {
    if ((opcode.families & family) != 0) kinds[opcode.value] = opcode.kind;
  }
  return kinds;
}

std::optional<Family> FamilyOf(int architecture) {
  switch (architecture) {
    case 80:
    case 86:
    case 87:
    case 89:
      return kAmpere;
    case 90:
      return kHopper;
    case 100:
      return kDatacenterBlackwell;
    case 120:
    case 121:
      return kBlackwell;
    default:
      return std::nullopt;
  }
}

const Kinds& TableOf(Family family) {
  static constexpr Kinds ampere = KindsOf(kAmpere), hopper = KindsOf(kHopper),
                         datacenter_blackwell = KindsOf(kDatacenterBlackwell),
                         blackwell = KindsOf(kBlackwell);
  switch (family) {
    case kAmpere:
      return ampere;
    case kHopper:
      return hopper;
    case kDatacenterBlackwell:
      return datacenter_blackwell;
    case kBlackwell:
      return blackwell;
  }
  return ampere;
}

// Bits of one load, from the upper half of an instruction.
int LoadBits(uint64_t high) {
  constexpr std::array<int, 8> kBits = {8,  8,  16,  16,
                                        32, 64, 128, 0};  // unsigned and signed bytes, halves, words
  return kBits[(high >> 9) & 7];
}

int CopyBits(uint64_t high, Family family) {
  if (family == kAmpere || family == kHopper) return LoadBits(high);
  constexpr std::array<int, 4> kBits = {32, 64, 128, 0};
  return kBits[(high >> 10) & 3];
}

void Count(Kind kind, uint64_t high, Family family, InstructionFacts* facts) {
  if (kind == Kind::kPadding) return;
  ++facts->num_instructions;
  int load_bits = 0;
  switch (kind) {
    case Kind::kOther:
    case Kind::kPadding:
      return;
    case Kind::kLoad:
      load_bits = LoadBits(high);
      break;
    case Kind::kWidestLoad:
      load_bits = 256;
      break;
    case Kind::kSmallCopy:
      load_bits = CopyBits(high, family);
      ++facts->num_async_copies;
      break;
    case Kind::kBulkCopy:
      ++facts->num_async_copies;
      break;
    case Kind::kLocalAccess:
      ++facts->num_local_accesses;
      break;
    case Kind::kTensorCore:
      ++facts->num_tensor_core_instructions;
      break;
    case Kind::kBarrier:
      ++facts->num_barriers;
      break;
    case Kind::kAtomic:
      ++facts->num_atomics;
      break;
    case Kind::kShuffle:
      ++facts->num_shuffles;
      break;
  }
  facts->load_bits = std::max(facts->load_bits, load_bits);
}

}  // namespace

std::optional<InstructionFacts> CountInstructions(std::string_view code, int architecture) {
  const std::optional<Family> family = FamilyOf(architecture);
  if (!family.has_value()) return std::nullopt;
  const Kinds& kinds = TableOf(*family);
  InstructionFacts facts;
  for (; code.size() >= kInstructionBytes; code.remove_prefix(kInstructionBytes)) {
    uint64_t low = 0, high = 0;
    std::memcpy(&low, code.data(), sizeof(low));
    std::memcpy(&high, code.data() + sizeof(low), sizeof(high));
    Count(kinds[low & kOpcodeMask], high, *family, &facts);
  }
  return facts;
}

}  // namespace warpsmith
