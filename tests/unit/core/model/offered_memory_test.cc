#include "core/model/offered_memory.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

OfferedMemory Offered(const ParameterLayout& layout) {
  std::vector<MemoryChecksum> checksums(layout.num_buffers());
  for (size_t i = 0; i < checksums.size(); ++i) checksums[i].first = i;
  return {.socket_path = "/tmp/none",
          .version = 3,
          .layout_sha256 = layout.Sha256(),
          .buffers = DescribeBuffers(layout, checksums)};
}

}  // namespace

TEST_CASE("buffers are described one behind the other, in bfloat16") {
  const ParameterLayout layout(OddConfig());
  const OfferedMemory offered = Offered(layout);
  int64_t offset = 0;
  for (int i = 0; i < layout.num_buffers(); ++i) {
    CHECK(offered.buffers[i].name == layout.buffers()[i].name);
    CHECK(offered.buffers[i].offset_bytes == offset);
    CHECK(offered.buffers[i].length_bytes == layout.buffers()[i].size * 2);
    offset += offered.buffers[i].length_bytes;
  }
  CHECK(CheckOfferedMemory(offered, layout).ok());
}

TEST_CASE("the first buffer whose checksum differs is named, with both") {
  const ParameterLayout layout(OddConfig());
  const OfferedMemory offered = Offered(layout);
  std::vector<MemoryChecksum> found(layout.num_buffers());
  for (size_t i = 0; i < found.size(); ++i) found[i].first = i;
  CHECK(CheckArrived(offered, found, "here").ok());
  found[1].second = 255;
  const absl::Status status = CheckArrived(offered, found, "here");
  CHECK(absl::IsDataLoss(status));
  CHECK(
      std::string(status.message()) ==
      "Buffer \"layers.0\" of version 3 has the checksum 000000000000000100000000000000ff here; the manifest "
      "says 00000000000000010000000000000000: publish it again");
}

TEST_CASE("an offer of other names, places, lengths or layouts is refused with both") {
  const ParameterLayout layout(OddConfig());
  const auto error = [&](auto change) {
    OfferedMemory offered = Offered(layout);
    change(offered);
    return CheckOfferedMemory(offered, layout);
  };
  CHECK(absl::IsFailedPrecondition(error([](auto& o) { o.layout_sha256 = "no"; })));
  CHECK(absl::IsInvalidArgument(error([](auto& o) { o.buffers.clear(); })));
  CHECK(absl::IsInvalidArgument(error([](auto& o) { o.buffers[0].name = "other"; })));
  CHECK(absl::IsInvalidArgument(error([](auto& o) { o.buffers[1].offset_bytes += 2; })));
  const absl::Status length = error([](auto& o) { o.buffers[1].length_bytes = 7; });
  CHECK(absl::IsInvalidArgument(length));
  CHECK_THAT(std::string(length.message()),
             Catch::Contains("\"layers.0\", 7 bytes") && Catch::Contains("in 16 bits the layout has"));
}

TEST_CASE("the text beside the memory tells versions and layouts apart") {
  const ParameterLayout layout(OddConfig());
  CHECK(MemoryText(1, layout) != MemoryText(2, layout));
  ModelConfig other = OddConfig();
  other.vocab_size += 1024;
  CHECK(MemoryText(1, layout) != MemoryText(1, ParameterLayout(other)));
  CHECK(MemoryText(1, layout).find('\n') == std::string::npos);
}

}  // namespace warpsmith
