// A process that offers weights in its GPU's memory, as a trainer would, and does what it is told line by line:
//
//   weights_sender MODEL DEVICE SOCKET
//
//   offer VERSION   writes PatternBits of that version and offers it; prints the offer, one line each: layout, number
//                   of buffers, then name, offset, length and checksum of each
//   spoil           changes one element of what is offered; prints "spoiled"
//   withdraw        prints "withdrawn"
//
// Ends with its input.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/check.h"
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

void Offer(uint64_t version, const std::string& socket, SharedWeights& weights) {
  weights.Withdraw();
  WritePattern(version, weights);
  const absl::StatusOr<OfferedMemory> offer = weights.Offer(version, socket, absl::Now() + absl::Seconds(30));
  WS_CHECK(offer.ok()) << offer.status().message();
  std::cout << offer->layout_sha256 << "\n" << offer->buffers.size() << "\n";
  for (const MemoryBuffer& buffer : offer->buffers) {
    std::cout << buffer.name << " " << buffer.offset_bytes << " " << buffer.length_bytes << " "
              << buffer.checksum << "\n";
  }
  std::cout << std::flush;
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
  warpsmith::Run(argv[1], std::atoi(argv[2]), argv[3]);
}
