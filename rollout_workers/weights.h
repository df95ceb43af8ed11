// Where a policy's weights come from: a seed, a checkpoint, or a file that a trainer published.
//
// Includes nothing of LibTorch, so that the service can name it.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_H_
#define WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/distributed/broadcast_place.h"
#include "core/model/model_config.h"

namespace warpsmith {

class Parameters;
class ParameterLayout;
class WeightSource;

// Weights that are ready to be given to a decoder. Immutable.
struct LoadedWeights {
  uint64_t policy_version = 0;
  // SHA-256 of the checksums of all buffers, in order: equal exactly where the weights are. Empty where they were
  // not read in this process: see HuggingFaceDirectory.
  std::string sha256;
  // In this process's memory, float32 or, for a GPU, also bfloat16 or float16; null: the first of the next three that
  // is set says where they are.
  std::shared_ptr<const Parameters> parameters;
  // What a GPU copies them from.
  std::shared_ptr<WeightSource> source;
  // Checkpoint that goes straight to a GPU.
  std::filesystem::path hugging_face_directory;
  // Drawn on a GPU: what they compute means nothing, and takes as long as if it did.
  std::optional<uint64_t> random_seed;
};

// A WeightsManifest (proto/warpsmith/v1/weights.proto) in plain terms.
struct OfferedBuffer {
  std::string name;
  int64_t offset_bytes = 0;
  int64_t length_bytes = 0;
  std::string sha256;
  std::string checksum;
};

struct OfferedWeights {
  uint64_t policy_version = 0;
  std::string transport;
  std::filesystem::path path;
  std::string dtype;
  std::vector<OfferedBuffer> buffers;
  std::string layout_sha256;
  std::map<std::string, std::string> model_fields;
  // Of "nccl", and whether the weights are no longer wanted; empty: they are.
  BroadcastPlace place;
  std::function<bool()> is_given_up;
};

// Version 0, drawn as the trainer draws it from the same seed.
LoadedWeights RandomWeights(const ModelConfig& config, uint64_t seed);

// Version 0 from the safetensors of a Hugging Face directory, converted to float32. The errors of
// LoadHuggingFaceWeights.
absl::StatusOr<LoadedWeights> HuggingFaceWeights(const ModelConfig& config,
                                                 const std::filesystem::path& directory);

// Version 0 from the same, for a GPU: nothing is read yet. There is no SHA-256: that of the buffers would need all of
// the weights in float32 on the host, and one of names and sizes would say equal of weights that are not.
LoadedWeights HuggingFaceDirectory(const std::filesystem::path& directory);

// Version 0 from weights in memory, float32 on the CPU.
LoadedWeights InitialWeights(Parameters parameters);

// LoadedWeights::sha256 of what `published` names, if its checksums are right.
std::string CombinedSha256(const OfferedWeights& published);

// SHA-256 of the parameter layout of `config`.
std::string LayoutSha256(const ModelConfig& config);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_H_
