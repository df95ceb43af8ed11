// How long new weights take from one process's GPU memory to another's, on one host:
//
//   weight_transport_rates small|8B SENDER_GPU RECEIVER_GPU [engine|file]
//
// A weights_sender that lies beside this program offers versions in turn. Prints for each what preparing takes (fetch,
// map, checksums at the sender), what committing takes (copy, checksums after it), and GB/s.
// `engine`: the receiver is a whole engine with samples under way, which go on. `file`: the weights come as a file in
// bfloat16 in /dev/shm instead, read into the host's memory and copied from there.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/distributed/nccl_environment.h"
#include "core/kernels/memory_checksum.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/mapped_weights_cuda.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/weights_file.h"
#include "rollout_workers/weights_switch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_pattern.h"
#include "tests/support/weights_sender.h"

namespace warpsmith {
namespace {

constexpr int kVersions = 4;

void Print(const std::string& what, uint64_t version, double gigabytes, absl::Duration prepare,
           absl::Duration commit) {
  const double seconds = absl::ToDoubleSeconds(commit);
  std::printf("%s, version %d: %.2f GB prepared in %.4f s, loaded in %.4f s (%.0f GB/s)\n", what.c_str(),
              static_cast<int>(version), gigabytes, absl::ToDoubleSeconds(prepare), seconds,
              gigabytes / seconds);
  std::fflush(stdout);
}

void RunAlone(const ModelConfig& config, const std::string& what, int device, WeightsSender& sender) {
  WS_CHECK(cudaSetDevice(device) == cudaSuccess) << "GPU " << device;
  const DeviceWeights weights = DeviceWeights::Allocate(config, device).value();
  auto* const elements = reinterpret_cast<uint16_t*>(weights.base());
  const double gigabytes = static_cast<double>(weights.size()) * sizeof(uint16_t) * 1e-9;
  for (uint64_t version = 1; version <= kVersions; ++version) {
    const OfferedMemory offer = sender.Offer(version);
    const absl::Time began = absl::Now();
    const auto source = MappedWeights::Open(config, offer, device, began + absl::Seconds(60));
    WS_CHECK(source.ok()) << source.status().message();
    const absl::Time prepared = absl::Now();
    const absl::Status copied = (*source)->CopyTo(elements, device, prepared + absl::Seconds(60));
    WS_CHECK(copied.ok()) << copied.message();
    Print(what, version, gigabytes, prepared - began, absl::Now() - prepared);
  }
}

// The pattern of `version` in a file, as a trainer publishes it.
OfferedWeights WriteFile(const ModelConfig& config, uint64_t version, const std::filesystem::path& path) {
  const ParameterLayout layout(config);
  std::vector<uint16_t> pattern(kPatternElements);
  for (int64_t i = 0; i < kPatternElements; ++i) pattern[i] = PatternBits(version, i);
  OfferedWeights offered{
      .policy_version = version, .path = path, .dtype = "bfloat16", .layout_sha256 = layout.Sha256()};
  FILE* const file = std::fopen(path.c_str(), "wb");
  WS_CHECK(file != nullptr) << path.string();
  int64_t offset = 0;
  for (const ParameterBuffer& buffer : layout.buffers()) {
    MemoryChecksum checksum;
    for (int64_t done = 0; done < buffer.size; done += kPatternElements) {
      const int64_t size = std::min(kPatternElements, buffer.size - done);
      const std::string_view bytes(reinterpret_cast<const char*>(pattern.data()), size * sizeof(uint16_t));
      checksum = SumOf(checksum, ChecksumOf(bytes, done * sizeof(uint16_t) / sizeof(uint64_t)));
      WS_CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size()) << "no room in /dev/shm";
    }
    const int64_t length = buffer.size * int64_t{sizeof(uint16_t)};
    offered.buffers.push_back(
        {.name = buffer.name, .offset_bytes = offset, .length_bytes = length, .checksum = ToHex(checksum)});
    offset += length;
  }
  WS_CHECK(std::fclose(file) == 0) << "no room in /dev/shm";
  return offered;
}

void RunFile(const ModelConfig& config, const std::string& what, int device) {
  WS_CHECK(cudaSetDevice(device) == cudaSuccess) << "GPU " << device;
  DeviceWeights weights = DeviceWeights::Allocate(config, device).value();
  const double gigabytes = static_cast<double>(weights.size()) * sizeof(uint16_t) * 1e-9;
  const std::filesystem::path path = absl::StrCat("/dev/shm/weight_transport_rates.", getpid());
  const OfferedWeights offered = WriteFile(config, 1, path);
  for (uint64_t round = 1; round <= 2; ++round) {
    const absl::Time began = absl::Now();
    const auto loaded = LoadWeightsFile(config, offered, DtypeInMemory::kAsInFile, began + absl::Seconds(60));
    WS_CHECK(loaded.ok()) << loaded.status().message();
    const absl::Time prepared = absl::Now();
    const absl::Status copied = weights.SetParameters(*loaded->parameters);
    WS_CHECK(copied.ok()) << copied.message();
    Print(what, round, gigabytes, prepared - began, absl::Now() - prepared);
  }
  std::filesystem::remove(path);
}

OfferedWeights ToOffered(const OfferedMemory& memory) {
  OfferedWeights offered{.policy_version = memory.version,
                         .transport = "cuda_memory",
                         .path = memory.socket_path,
                         .dtype = "bfloat16",
                         .layout_sha256 = memory.layout_sha256};
  for (const MemoryBuffer& buffer : memory.buffers) {
    offered.buffers.push_back({.name = buffer.name,
                               .offset_bytes = buffer.offset_bytes,
                               .length_bytes = buffer.length_bytes,
                               .checksum = buffer.checksum});
  }
  return offered;
}

// 16 samples of version 0 that outlast the bench.
GenerationJob LongJob() {
  GenerationGroup group{.prompt_token_ids = std::vector<int32_t>(64, 5)};
  for (int i = 0; i < 16; ++i) {
    group.samples.push_back({.sample_index = i, .seed = static_cast<uint64_t>(i)});
  }
  return {.id = 1, .groups = {group}, .sampling = {.answer_tokens_max = 1900}};
}

void RunEngine(const ModelConfig& config, const std::string& what, int device, WeightsSender& sender) {
  EngineOptions options{.num_slots = 16, .context_tokens_max = 2048};
  options.cuda = CudaPlacement{.devices = {device}, .num_pages = 16 * 128 + 1};
  const EngineEvents events = {.on_sample = [](const FinishedSample&) {},
                               .on_failure =
                                   [](const FailedJob& job) {
                                     std::printf("a job failed: %s\n",
                                                 std::string(job.status.message()).c_str());
                                   }};
  auto engine = Engine::Create(config, options, events);
  WS_CHECK(engine.ok()) << engine.status().message();
  LoadedWeights first;
  first.random_seed = 1;
  WS_CHECK((*engine)->SwapWeights(first, absl::Now() + absl::Seconds(60)).ok());
  WS_CHECK((*engine)->Submit(LongJob()).ok());
  WeightsSwitch weights(config, engine->get());
  for (uint64_t version = 1; version <= kVersions; ++version) {
    const OfferedMemory offer = sender.Offer(version);
    double gigabytes = 0;
    for (const MemoryBuffer& buffer : offer.buffers)
      gigabytes += static_cast<double>(buffer.length_bytes) * 1e-9;
    const absl::Time began = absl::Now();
    const absl::Status ready = weights.Prepare(ToOffered(offer), began + absl::Seconds(60));
    WS_CHECK(ready.ok()) << ready.message();
    const absl::Time prepared = absl::Now();
    const absl::Status loaded =
        weights.Commit(version, prepared + absl::Seconds(60), paged::EntriesOnChange::kKeep);
    WS_CHECK(loaded.ok()) << loaded.message();
    Print(what, version, gigabytes, prepared - began, absl::Now() - prepared);
    std::printf("%d samples are under way\n", (*engine)->status().num_active_samples);
  }
  const absl::Time began = absl::Now();
  WS_CHECK((*engine)->Sleep(SleepDepth::kPagesAndWeights).ok());
  const absl::Time asleep = absl::Now();
  WS_CHECK((*engine)->Wake().ok());
  std::printf("%s: asleep, pages and weights given back, in %.4f s, awake in %.4f s\n", what.c_str(),
              absl::ToDoubleSeconds(asleep - began), absl::ToDoubleSeconds(absl::Now() - asleep));
}

void Run(const std::string& model, int sender_device, int device, const std::string& mode) {
  const ModelConfig config = PatternModel(model);
  if (mode == "file") {
    return RunFile(config, absl::StrCat(model, ", a file to GPU ", device), device);
  }
  const TemporaryDirectory directory;
  const std::string what = absl::StrCat(model, ", GPU ", sender_device, " to ",
                                        mode == "engine" ? "an engine on " : "", "GPU ", device);
  WeightsSender sender("weights_sender", model, sender_device, directory.path() / "weights");
  (mode == "engine" ? RunEngine : RunAlone)(config, what, device, sender);
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  warpsmith::LeaveMulticastOff();
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: weight_transport_rates small|8B SENDER_GPU RECEIVER_GPU [engine|file]\n");
    return 2;
  }
  warpsmith::Run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argc == 5 ? argv[4] : "");
}
