#include "trainer/run_folder/tensorboard_writer.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "trainer/run_folder/crc32c.h"

namespace warpsmith {

TEST_CASE("a record is length, checksum, data, checksum") {
  const std::string record = FrameRecord("abc");
  REQUIRE(record.size() == 8 + 4 + 3 + 4);
  CHECK(record.substr(0, 8) == std::string("\x03\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, 3) == "abc");
  uint32_t crc = 0;
  record.copy(reinterpret_cast<char*>(&crc), 4, 15);
  CHECK(crc == MaskedCrc32c("abc"));
}

TEST_CASE("an event file begins with its version, then scalars") {
  TemporaryDirectory directory;
  auto writer = TensorboardWriter::Create(directory.path(), absl::FromUnixSeconds(1000));
  REQUIRE(writer.ok());
  REQUIRE(writer->Write(8, absl::FromUnixSeconds(1001), {{"train/reward", 1.5}}).ok());
  const auto entry = *std::filesystem::directory_iterator(directory.path());
  const std::string content = ReadFile(entry.path()).value();
  const size_t version = content.find("brain.Event:2");
  const size_t tag = content.find("train/reward");
  REQUIRE(version != std::string::npos);
  REQUIRE(tag != std::string::npos);
  CHECK(version < tag);
  // simple_value, field 2 of Summary.Value, follows the tag: 0x15, then 1.5f.
  CHECK(content.substr(tag + 12, 5) == std::string("\x15\0\0\xc0\x3f", 5));
}

TEST_CASE("events that are written anew keep their times, and files of others stay") {
  TemporaryDirectory directory;
  const auto of_another = directory.path() / "events.out.tfevents.1.host";
  REQUIRE(WriteFileAtomically(of_another, "x").ok());
  const auto content = [&] {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      if (entry.path() != of_another) all += ReadFile(entry.path()).value();
    }
    return all;
  };
  const auto bytes_of = [](double seconds) {
    return std::string(reinterpret_cast<const char*>(&seconds), sizeof(seconds));
  };
  auto first = TensorboardWriter::Create(directory.path(), absl::FromUnixSeconds(1000));
  REQUIRE(first->Write(300, absl::FromUnixSeconds(1001), {{"train/reward", 1.5}}).ok());
  REQUIRE(first->Write(301, absl::FromUnixSeconds(1002), {{"train/reward", 2.5}}).ok());
  REQUIRE(TensorboardWriter::Create(directory.path(), absl::FromUnixSeconds(2000),
                                    {{.step = 300, .scalars = {{"train/reward", 1.5}}}})
              .ok());
  CHECK(content().find(bytes_of(1001)) != std::string::npos);
  CHECK(content().find(bytes_of(1002)) == std::string::npos);
  CHECK(std::filesystem::exists(of_another));
  // Session log of status START, which makes a TensorBoard forget what it has read.
  CHECK(content().find(std::string("\x10\x00\x3a\x02\x08\x01", 6)) != std::string::npos);
}

}  // namespace warpsmith
