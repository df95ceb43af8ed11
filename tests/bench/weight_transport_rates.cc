// How long new weights take from one process's GPU memory to another's, on one host:
//
//   weight_transport_rates small|8B SENDER_GPU RECEIVER_GPU
//
// A weights_sender that lies beside this program offers versions in turn. Prints for each what preparing takes (fetch,
// map, checksums at the sender), what committing takes (copy, checksums after it), and GB/s.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/mapped_weights_cuda.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_pattern.h"
#include "tests/support/weights_sender.h"

namespace warpsmith {
namespace {

constexpr int kVersions = 4;

void Run(const std::string& model, int sender_device, int device) {
  const TemporaryDirectory directory;
  const ModelConfig config = PatternModel(model);
  WeightsSender sender("weights_sender", model, sender_device, directory.path() / "weights");
  WS_CHECK(cudaSetDevice(device) == cudaSuccess) << "GPU " << device;
  const DeviceWeights weights = DeviceWeights::Allocate(config, device).value();
  auto* const elements = reinterpret_cast<uint16_t*>(weights.base());
  const double gigabytes = static_cast<double>(weights.size()) * sizeof(uint16_t) * 1e-9;
  for (uint64_t version = 1; version <= kVersions; ++version) {
    const OfferedMemory offer = sender.Offer(version);
    const absl::Time began = absl::Now();
    auto source = MappedWeights::Open(config, offer, device, began + absl::Seconds(60));
    WS_CHECK(source.ok()) << source.status().message();
    const absl::Time prepared = absl::Now();
    const absl::Status copied = (*source)->CopyTo(elements, device, prepared + absl::Seconds(60));
    WS_CHECK(copied.ok()) << copied.message();
    const absl::Time loaded = absl::Now();
    source->reset();
    const double prepare = absl::ToDoubleSeconds(prepared - began);
    const double commit = absl::ToDoubleSeconds(loaded - prepared);
    std::printf(
        "%s, GPU %d to GPU %d, version %d: %.2f GB prepared in %.4f s, loaded in %.4f s (%.0f GB/s), "
        "unmapped "
        "in %.4f s\n",
        model.c_str(), sender_device, device, static_cast<int>(version), gigabytes, prepare, commit,
        gigabytes / commit, absl::ToDoubleSeconds(absl::Now() - loaded));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: weight_transport_rates small|8B SENDER_GPU RECEIVER_GPU\n");
    return 2;
  }
  warpsmith::Run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
