#include "rollout_workers/weights.h"

#include <utility>

#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/model/hugging_face_weights.h"
#include "core/model/parameters.h"

namespace warpsmith {
namespace {

// Of the digests of all buffers, in order.
std::string DigestOfDigests(const std::vector<std::string>& digests) {
  Sha256 all;
  for (const std::string& digest : digests) all.Update(digest);
  return all.HexDigest();
}

std::string DigestOf(const Parameters& parameters) {
  std::vector<std::string> digests;
  for (int i = 0; i < parameters.num_buffers(); ++i) digests.push_back(Sha256Hex(parameters.BufferBytes(i)));
  return DigestOfDigests(digests);
}

}  // namespace

LoadedWeights RandomWeights(const ModelConfig& config, uint64_t seed) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(seed);
  return InitialWeights(std::move(parameters));
}

absl::StatusOr<LoadedWeights> HuggingFaceWeights(const ModelConfig& config,
                                                 const std::filesystem::path& directory) {
  Parameters parameters{ParameterLayout(config)};
  RETURN_IF_ERROR(LoadHuggingFaceWeights(directory, parameters));
  return InitialWeights(std::move(parameters));
}

LoadedWeights HuggingFaceDirectory(const std::filesystem::path& directory) {
  return {.policy_version = 0, .hugging_face_directory = directory};
}

LoadedWeights InitialWeights(Parameters parameters) {
  LoadedWeights weights{.policy_version = 0, .sha256 = DigestOf(parameters)};
  weights.parameters = std::make_shared<const Parameters>(std::move(parameters));
  return weights;
}

std::string CombinedSha256(const OfferedWeights& published) {
  std::vector<std::string> digests;
  for (const OfferedBuffer& buffer : published.buffers) {
    digests.push_back(buffer.checksum.empty() ? buffer.sha256 : buffer.checksum);
  }
  return DigestOfDigests(digests);
}

std::string LayoutSha256(const ModelConfig& config) { return ParameterLayout(config).Sha256(); }

}  // namespace warpsmith
