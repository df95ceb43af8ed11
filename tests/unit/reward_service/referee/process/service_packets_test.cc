#include "reward_service/referee/process/service_packets.h"

#include <fcntl.h>

#include <utility>

#include "core/base/memory_file.h"
#include "reward_service/jail/messages.h"
#include "reward_service/measure/request_json.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using service::Judge;

Packet PacketOf(nlohmann::json fields, int num_others = 0) {
  Packet packet;
  packet.fields = std::move(fields);
  packet.fields[Judge::limits.name] = JudgeLimits();
  packet.fields[Judge::timing.name] = TimingEffort();
  for (const auto& flag :
       {Judge::verify_only, Judge::another_follows, Judge::with_blas, Judge::with_torch, Judge::with_streams})
    packet.fields.emplace(flag.name, false);
  packet.descriptors.push_back(*SealedMemoryFile("class Model: pass"));
  packet.descriptors.push_back(*SealedMemoryFile("class ModelNew: pass"));
  while (num_others-- > 0) packet.descriptors.push_back(*SealedMemoryFile("ELF"));
  return packet;
}

TEST_CASE("a native program is a library, a Python one a text and its extensions") {
  const Packet native = PacketOf(Make<Judge>({{Judge::key, "k"},
                                              {Judge::kind, Judge::kNative},
                                              {Judge::with_blas, true},
                                              {Judge::with_streams, true}}));
  const auto of_native = ReadJudgeRequest(native);
  REQUIRE(of_native.ok());
  CHECK(of_native->task.key == "k");
  CHECK(of_native->task.reference_source == "class Model: pass");
  CHECK(of_native->library_fd == native.descriptors[1].get());
  CHECK(of_native->with_blas);
  CHECK_FALSE(of_native->with_torch);
  CHECK(of_native->with_streams);
  CHECK_FALSE(of_native->seed);
  const Packet python = PacketOf(
      Make<Judge>(
          {{Judge::key, "k"}, {Judge::kind, Judge::kPython}, {Judge::seed, 7}, {Judge::with_torch, true}}),
      2);
  const auto of_python = ReadJudgeRequest(python);
  REQUIRE(of_python.ok());
  CHECK(of_python->source == "class ModelNew: pass");
  CHECK(of_python->with_torch);
  CHECK_FALSE(of_python->with_blas);
  CHECK_FALSE(of_python->with_streams);
  CHECK(of_python->extension_fds ==
        std::vector<int>{python.descriptors[2].get(), python.descriptors[3].get()});
  CHECK(of_python->seed == 7);
}

TEST_CASE("a request without its texts is a failure of the machine") {
  Packet packet = PacketOf(Make<Judge>({{Judge::kind, Judge::kNative}}));
  packet.descriptors.pop_back();
  CHECK(absl::IsInternal(ReadJudgeRequest(packet).status()));
  packet.descriptors.clear();
  CHECK(absl::IsInternal(ReadTask(packet).status()));
}

TEST_CASE("a failure is told by its code and its words") {
  const nlohmann::json told = FailedPacket(absl::ResourceExhaustedError("no memory"));
  CHECK(Read(told, service::Failed::code) == static_cast<int>(absl::StatusCode::kResourceExhausted));
  CHECK(Read(told, service::Failed::error) == "no memory");
}

}  // namespace
}  // namespace warpsmith
