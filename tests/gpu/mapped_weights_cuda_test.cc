// Two processes: a weights_sender offers, this one takes. Also built against a GPU made of the host.
#include "core/model/mapped_weights_cuda.h"

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/descriptor_server.h"
#include "core/model/device_weights_cuda.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_pattern.h"
#include "tests/support/weights_sender.h"

namespace warpsmith {
namespace {

struct Receiver {
  const TemporaryDirectory directory;
  const ModelConfig config = PatternModel("small");
  WeightsSender sender{WARPSMITH_WEIGHTS_SENDER, "small", 0, directory.path() / "weights"};
  DeviceWeights weights = Allocated();

  DeviceWeights Allocated() const {
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    return DeviceWeights::Allocate(config, 0).value();
  }
  absl::StatusOr<std::unique_ptr<MappedWeights>> Open(const OfferedMemory& offer) const {
    return MappedWeights::Open(config, offer, 0, absl::Now() + absl::Seconds(30));
  }
  absl::Status Copy(WeightSource& source) {
    return source.CopyTo(reinterpret_cast<uint16_t*>(weights.base()), 0, absl::Now() + absl::Seconds(30));
  }
  // How many elements are not those of `version`; those behind the last buffer stay zero.
  int64_t NumOthers(uint64_t version) const {
    std::vector<uint16_t> bits(weights.size() + 16);
    REQUIRE(cudaMemcpy(bits.data(), weights.base(), bits.size() * sizeof(uint16_t), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    int64_t others = 0;
    for (int64_t i = 0; i < weights.size(); ++i) others += bits[i] != PatternBits(version, i);
    for (int64_t i = weights.size(); i < std::ssize(bits); ++i) others += bits[i] != 0;
    return others;
  }
};

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

TEST_CASE("weights of another process arrive by version, and stay theirs") {
  Receiver receiver;
  for (const uint64_t version : {1, 2, 3}) {
    const auto source = receiver.Open(receiver.sender.Offer(version));
    INFO(MessageOf(source.status()));
    REQUIRE(source.ok());
    CHECK((*source)->num_elements() == receiver.weights.size());
    REQUIRE(receiver.Copy(**source).ok());
    CHECK(receiver.NumOthers(version) == 0);
  }
}

TEST_CASE("weights that were mapped are taken also when their sender has been killed") {
  Receiver receiver;
  const auto source = receiver.Open(receiver.sender.Offer(4)).value();
  receiver.sender.End(SIGKILL);
  REQUIRE(receiver.Copy(*source).ok());
  CHECK(receiver.NumOthers(4) == 0);
}

TEST_CASE("weights that are not what was offered are refused before any is taken") {
  Receiver receiver;
  REQUIRE(receiver.Copy(*receiver.Open(receiver.sender.Offer(5)).value()).ok());
  const OfferedMemory offer = receiver.sender.Offer(6);
  receiver.sender.Spoil();
  const absl::Status status = receiver.Open(offer).status();
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(MessageOf(status), Catch::Contains("version 6") && Catch::Contains("at its sender") &&
                                    Catch::Contains("publish it again"));
  CHECK(receiver.NumOthers(5) == 0);
}

TEST_CASE("weights that a sender changes after they were checked are seen after the copy") {
  Receiver receiver;
  const auto source = receiver.Open(receiver.sender.Offer(7)).value();
  receiver.sender.Spoil();
  const absl::Status status = receiver.Copy(*source);
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(MessageOf(status), Catch::Contains("after the copy"));
}

TEST_CASE("an offer that does not fit this model, or is none any more, is refused by what is wrong") {
  Receiver receiver;
  const OfferedMemory offer = receiver.sender.Offer(8);
  OfferedMemory changed = offer;
  changed.layout_sha256 = "abc";
  CHECK(absl::IsFailedPrecondition(receiver.Open(changed).status()));
  changed = offer;
  changed.version = 9;
  CHECK_THAT(MessageOf(receiver.Open(changed).status()),
             Catch::Contains("version 8") && Catch::Contains("version 9"));
  changed = offer;
  changed.buffers.pop_back();
  CHECK(absl::IsInvalidArgument(receiver.Open(changed).status()));
  changed = offer;
  changed.buffers[1].length_bytes *= 2;  // as float32 would be
  CHECK(absl::IsInvalidArgument(receiver.Open(changed).status()));
  receiver.sender.Withdraw();
  CHECK(absl::IsUnavailable(receiver.Open(offer).status()));
}

TEST_CASE("memory that is less than the model's weights, or none of a GPU, is refused") {
  Receiver receiver;
  const OfferedMemory offer = receiver.sender.Offer(10);
  const ParameterLayout layout(receiver.config);
  const auto small = SharedMemory::Allocate(0, 1000).value();
  OfferedMemory other = offer;
  other.socket_path = receiver.directory.path() / "other";
  {
    const auto server =
        DescriptorServer::Start(other.socket_path, small->Export().value(), MemoryText(10, layout)).value();
    const absl::Status status = receiver.Open(other).status();
    INFO(MessageOf(status));
    CHECK_FALSE(status.ok());
  }
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd reader(ends[0]);
  const auto server =
      DescriptorServer::Start(other.socket_path, UniqueFd(ends[1]), MemoryText(10, layout)).value();
  const absl::Status status = receiver.Open(other).status();
  INFO(MessageOf(status));
  CHECK_FALSE(status.ok());
}

}  // namespace warpsmith
