// A process that offers weights in its GPU's memory, as a trainer would, and does what it is told line by line:
//
//   weights_sender MODEL DEVICE SOCKET
//
//   offer VERSION   writes PatternBits of that version and offers it; prints the offer, one line each: layout, number
//                   of buffers, then name, offset, length and checksum of each
//   broadcast VERSION SECONDS   writes the same and broadcasts it to one receiver, with that deadline; prints the offer
//                   as above, and the id of the group in hex; reads "received" or "failed" from the receiver; prints
//                   what came of it
//   die VERSION SECONDS   likewise, and kills itself after the first buffer
//   spoil           changes one element of what is offered; prints "spoiled"
//   withdraw        prints "withdrawn"
//
// Ends with its input.
#include <cuda_runtime_api.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/distributed/nccl_broadcast_cuda.h"
#include "core/distributed/nccl_environment.h"
#include "core/model/broadcast_weights_cuda.h"
#include "core/model/shared_weights_cuda.h"
#include "tests/support/weights_pattern.h"

namespace warpsmith {
namespace {

// The rest is copied on the device from the first repetition.
void WritePattern(uint64_t version, SharedWeights& weights) {
  const int64_t first = std::min(kPatternElements, weights.size());
  std::vector<uint16_t> bits(first);
  for (int64_t i = 0; i < first; ++i) bits[i] = PatternBits(version, i);
  __nv_bfloat16* const base = weights.base();
  WS_CHECK(cudaMemcpy(base, bits.data(), first * sizeof(uint16_t), cudaMemcpyHostToDevice) == cudaSuccess);
  for (int64_t done = first; done < weights.size(); done += first) {
    const int64_t size = std::min(first, weights.size() - done);
    WS_CHECK(cudaMemcpy(base + done, base, size * sizeof(uint16_t), cudaMemcpyDeviceToDevice) == cudaSuccess);
  }
}

void Print(const OfferedMemory& offer) {
  std::cout << offer.layout_sha256 << "\n" << offer.buffers.size() << "\n";
  for (const MemoryBuffer& buffer : offer.buffers) {
    std::cout << buffer.name << " " << buffer.offset_bytes << " " << buffer.length_bytes << " "
              << buffer.checksum << "\n";
  }
  std::cout << std::flush;
}

void Offer(uint64_t version, const std::string& socket, SharedWeights& weights) {
  weights.Withdraw();
  WritePattern(version, weights);
  const absl::StatusOr<OfferedMemory> offer = weights.Offer(version, socket, absl::Now() + absl::Seconds(30));
  WS_CHECK(offer.ok()) << offer.status().message();
  Print(*offer);
}

void Broadcast(const ModelConfig& config, int device, uint64_t version, absl::Time deadline,
               SharedWeights& weights) {
  weights.Withdraw();
  WritePattern(version, weights);
  const PrepareReceiver receiver = [](const OfferedBroadcast& offer, absl::Time) -> absl::Status {
    Print(offer.memory);
    std::cout << absl::BytesToHexString(offer.place.id) << std::endl;
    std::string answer;
    std::cin >> answer;
    return answer == "received" ? absl::OkStatus() : absl::UnavailableError(answer);
  };
  const BroadcastOutcome outcome = BroadcastWeights(config, reinterpret_cast<std::byte*>(weights.base()),
                                                    device, version, {receiver}, deadline);
  std::cout << (outcome.sent.ok() ? "sent" : outcome.sent.ToString()) << std::endl;
}

void Die(const ModelConfig& config, int device, uint64_t version, absl::Time deadline,
         SharedWeights& weights) {
  const ParameterLayout layout(config);
  const std::string id = DrawBroadcastId().value();
  Print({.socket_path = {},
         .version = version,
         .layout_sha256 = layout.Sha256(),
         .buffers = DescribeBuffers(layout, std::vector<MemoryChecksum>(layout.num_buffers()))});
  std::cout << absl::BytesToHexString(id) << std::endl;
  const auto broadcast = NcclBroadcast::Join({id, 2, 0}, device, deadline).value();
  WS_CHECK(broadcast->Bring(weights.base(), layout.buffers()[0].size * int64_t{sizeof(uint16_t)}).ok());
  raise(SIGKILL);
}

void Spoil(SharedWeights& weights) {
  const uint16_t bits = 0x4000;  // in no pattern
  WS_CHECK(cudaMemcpy(weights.base() + weights.size() / 2, &bits, sizeof(bits), cudaMemcpyHostToDevice) ==
           cudaSuccess);
  std::cout << "spoiled" << std::endl;
}

void Run(const std::string& model, int device, const std::string& socket) {
  auto weights = SharedWeights::Create(PatternModel(model), device);
  WS_CHECK(weights.ok()) << weights.status().message();
  for (std::string command; std::cin >> command;) {
    if (command == "offer") {
      uint64_t version = 0;
      std::cin >> version;
      Offer(version, socket, **weights);
    } else if (command == "broadcast" || command == "die") {
      uint64_t version = 0;
      int64_t seconds = 0;
      std::cin >> version >> seconds;
      const absl::Time deadline = absl::Now() + absl::Seconds(seconds);
      (command == "die" ? Die : Broadcast)(PatternModel(model), device, version, deadline, **weights);
    } else if (command == "spoil") {
      Spoil(**weights);
    } else {
      (*weights)->Withdraw();
      std::cout << "withdrawn" << std::endl;
    }
  }
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: weights_sender small|8B DEVICE SOCKET\n";
    return 2;
  }
  warpsmith::LeaveMulticastOff();
  // Standard output is for the receiver alone.
  setenv("NCCL_DEBUG_FILE", "/dev/stderr", 1);
  warpsmith::SetUpLogging("weights-sender", "info");
  warpsmith::Run(argv[1], std::atoi(argv[2]), argv[3]);
}
