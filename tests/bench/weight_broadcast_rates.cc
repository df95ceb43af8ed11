// How long new weights take from one process's GPU to an engine on others, by broadcast, while samples are under way:
//
//   weight_broadcast_rates small|8B SENDER_GPU RECEIVER_GPU[,RECEIVER_GPU...]
//
// A weights_sender that lies beside this program sends versions in turn. Prints for each what preparing takes (meeting,
// transfer, checksums), what committing takes (copy, checksums after it), and GB/s. Then a sender dies midway, and the
// engine is to go on with what it had until the next one.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/model/offered_memory.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/weight_transport.h"
#include "rollout_workers/weights_switch.h"
#include "tests/support/offered_broadcast.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_pattern.h"
#include "tests/support/weights_sender.h"

namespace warpsmith {
namespace {

constexpr int kVersions = 4;
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kPatienceWithTheDead = absl::Seconds(3);

double GigabytesOf(const OfferedBroadcast& broadcast) {
  double gigabytes = 0;
  for (const MemoryBuffer& buffer : broadcast.memory.buffers) {
    gigabytes += static_cast<double>(buffer.length_bytes) * 1e-9;
  }
  return gigabytes;
}

// 16 samples of version 0 that outlast the bench.
GenerationJob LongJob() {
  GenerationGroup group{.prompt_token_ids = std::vector<int32_t>(64, 5)};
  for (int i = 0; i < 16; ++i) {
    group.samples.push_back({.sample_index = i, .seed = static_cast<uint64_t>(i)});
  }
  return {.id = 1, .groups = {group}, .sampling = {.answer_tokens_max = 1900}};
}

class Bench {
 public:
  Bench(const std::string& model, int sender_device, const std::vector<int>& devices)
      : config_(PatternModel(model)), devices_(devices), model_(model), sender_device_(sender_device) {
    EngineOptions options{.num_slots = 16, .context_tokens_max = 2048};
    options.cuda = CudaPlacement{.devices = devices, .num_pages = 16 * 128 + 1};
    const EngineEvents events = {.on_sample = [](const FinishedSample&) {},
                                 .on_failure =
                                     [](const FailedJob& job) {
                                       std::printf("a job failed: %s\n",
                                                   std::string(job.status.message()).c_str());
                                     }};
    auto engine = Engine::Create(config_, options, events);
    WS_CHECK(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
    LoadedWeights first;
    first.random_seed = 1;
    WS_CHECK(engine_->SwapWeights(first, absl::Now() + kPatience).ok());
    WS_CHECK(engine_->Submit(LongJob()).ok());
    weights_ = std::make_unique<WeightsSwitch>(config_, engine_.get());
  }

  void Run() {
    std::unique_ptr<WeightsSender> sender = NewSender();
    for (uint64_t version = 1; version <= kVersions; ++version) Publish(version, *sender);
    PrintState();
    const OfferedBroadcast offer = sender->Broadcast("die", kVersions + 1, kPatienceWithTheDead);
    const absl::Time began = absl::Now();
    const absl::Status died = weights_->Prepare(ToOffered(offer), began + kPatienceWithTheDead);
    WS_CHECK(!died.ok()) << "a sender that died has sent all";
    std::printf("a sender that died after its first buffer: %.2f s, %s\n",
                absl::ToDoubleSeconds(absl::Now() - began), died.ToString().c_str());
    PrintState();
    sender = NewSender();
    Publish(kVersions + 2, *sender);
    PrintState();
  }

 private:
  std::unique_ptr<WeightsSender> NewSender() {
    const TemporaryDirectory unused;
    return std::make_unique<WeightsSender>("weights_sender", model_, sender_device_,
                                           unused.path() / "weights");
  }

  void Publish(uint64_t version, WeightsSender& sender) {
    const OfferedBroadcast offer = sender.Broadcast("broadcast", version, kPatience);
    const absl::Time began = absl::Now();
    const absl::Status ready = weights_->Prepare(ToOffered(offer), began + kPatience);
    const absl::Duration preparing = absl::Now() - began;
    const std::string sent = sender.Answer(ready.ok() ? "received" : "failed");
    WS_CHECK(ready.ok()) << ready.message() << "; the sender: " << sent;
    const absl::Time prepared = absl::Now();
    const absl::Status loaded =
        weights_->Commit(version, prepared + kPatience, paged::EntriesOnChange::kKeep);
    WS_CHECK(loaded.ok()) << loaded.message();
    const double gigabytes = GigabytesOf(offer), seconds = absl::ToDoubleSeconds(preparing);
    std::printf(
        "version %d: %.2f GB prepared in %.3f s (%.0f GB/s with the meeting), committed in %.4f s; sender: "
        "%s\n",
        static_cast<int>(version), gigabytes, seconds, gigabytes / seconds,
        absl::ToDoubleSeconds(absl::Now() - prepared), sent.c_str());
  }

  void PrintState() {
    const EngineStatus before = engine_->status();
    absl::SleepFor(absl::Milliseconds(200));
    const EngineStatus status = engine_->status();
    size_t free = 0, total = 0;
    WS_CHECK(cudaSetDevice(devices_[0]) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess);
    std::printf("version %d is in use, %d samples are under way, %d tokens in 0.2 s, %.2f GB are free\n",
                static_cast<int>(status.policy_version), status.num_active_samples,
                static_cast<int>(status.num_tokens_decoded - before.num_tokens_decoded),
                static_cast<double>(free) * 1e-9);
    std::fflush(stdout);
  }

  const ModelConfig config_;
  const std::vector<int> devices_;
  const std::string model_;
  const int sender_device_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<WeightsSwitch> weights_;
};

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr,
                 "usage: weight_broadcast_rates small|8B SENDER_GPU RECEIVER_GPU[,RECEIVER_GPU...]\n");
    return 2;
  }
  std::vector<int> devices;
  for (const auto device : absl::StrSplit(argv[3], ','))
    devices.push_back(std::atoi(std::string(device).c_str()));
  warpsmith::Bench(argv[1], std::atoi(argv[2]), devices).Run();
}
