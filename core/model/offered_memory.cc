#include "core/model/offered_memory.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/model/staging_plan.h"

namespace warpsmith {
namespace {

constexpr int64_t kElementBytes = 2;  // bfloat16 or float16

}  // namespace

std::vector<MemoryBuffer> DescribeBuffers(const ParameterLayout& layout,
                                          const std::vector<MemoryChecksum>& checksums) {
  WS_CHECK(std::ssize(checksums) == layout.num_buffers()) << checksums.size() << " checksums";
  const std::vector<int64_t> offsets = BufferOffsets(layout);
  std::vector<MemoryBuffer> buffers;
  for (int i = 0; i < layout.num_buffers(); ++i) {
    buffers.push_back({.name = layout.buffers()[i].name,
                       .offset_bytes = offsets[i] * kElementBytes,
                       .length_bytes = layout.buffers()[i].size * kElementBytes,
                       .checksum = ToHex(checksums[i])});
  }
  return buffers;
}

absl::Status CheckOfferedMemory(const OfferedMemory& offered, const ParameterLayout& layout) {
  if (offered.layout_sha256 != layout.Sha256()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Version ", offered.version, " has the layout ", Escape(offered.layout_sha256, 64),
                     " and this model ", layout.Sha256(), ": start both with the same model section"));
  }
  const std::vector<MemoryBuffer> expected =
      DescribeBuffers(layout, std::vector<MemoryChecksum>(layout.num_buffers()));
  if (offered.buffers.size() != expected.size()) {
    return absl::InvalidArgumentError(absl::StrCat("The manifest has ", offered.buffers.size(),
                                                   " buffers; the layout has ", expected.size()));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const MemoryBuffer &given = offered.buffers[i], &wanted = expected[i];
    if (given.name == wanted.name && given.offset_bytes == wanted.offset_bytes &&
        given.length_bytes == wanted.length_bytes) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Buffer ", i, " of the manifest is \"", Escape(given.name, 64), "\", ",
                     given.length_bytes, " bytes at ", given.offset_bytes, "; in 16 bits the layout has \"",
                     wanted.name, "\", ", wanted.length_bytes, " bytes at ", wanted.offset_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckArrived(const OfferedMemory& offered, const std::vector<MemoryChecksum>& found,
                          const char* where) {
  WS_CHECK(found.size() == offered.buffers.size()) << found.size() << " checksums";
  for (size_t i = 0; i < found.size(); ++i) {
    if (ToHex(found[i]) == offered.buffers[i].checksum) continue;
    return absl::DataLossError(absl::StrCat("Buffer \"", offered.buffers[i].name, "\" of version ",
                                            offered.version, " has the checksum ", ToHex(found[i]), " ",
                                            where, "; the manifest says ",
                                            Escape(offered.buffers[i].checksum, 64), ": publish it again"));
  }
  return absl::OkStatus();
}

std::string MemoryText(uint64_t version, const ParameterLayout& layout) {
  return absl::StrCat("warpsmith weights, version ", version, ", ",
                      BufferOffsets(layout).back() * kElementBytes, " bytes, layout ", layout.Sha256());
}

}  // namespace warpsmith
