// A file of weights as a trainer publishes it, for tests of those who load it.
#ifndef WARPSMITH_TESTS_SUPPORT_WEIGHTS_FILE_H_
#define WARPSMITH_TESTS_SUPPORT_WEIGHTS_FILE_H_

#include <cstdint>
#include <filesystem>

#include "core/model/model_config.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// Random weights of `seed` in `path`, the buffers of the layout one after the other, and their manifest: float32 with
// SHA-256s, or bfloat16 or float16 with checksums.
enum class FileForm { kFloat32, kBfloat16, kFloat16 };
OfferedWeights WriteWeightsFile(const ModelConfig& config, uint64_t seed, uint64_t policy_version,
                                const std::filesystem::path& path, FileForm form = FileForm::kFloat32);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_WEIGHTS_FILE_H_
