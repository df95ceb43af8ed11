#include "tests/support/weights_file.h"

#include <string>

#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/kernels/memory_checksum.h"
#include "core/model/parameters.h"

namespace warpsmith {

OfferedWeights WriteWeightsFile(const ModelConfig& config, uint64_t seed, uint64_t policy_version,
                                const std::filesystem::path& path, FileForm form) {
  const bool halves = form != FileForm::kFloat32, is_float16 = form == FileForm::kFloat16;
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(seed);
  if (halves) parameters = parameters.Clone(is_float16 ? at::kHalf : at::kBFloat16);
  OfferedWeights published{.policy_version = policy_version,
                           .path = path,
                           .dtype = is_float16 ? "float16" : (halves ? "bfloat16" : "float32"),
                           .layout_sha256 = parameters.layout().Sha256()};
  std::string content;
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    const std::string_view bytes = parameters.BufferBytes(i);
    published.buffers.push_back({.name = parameters.layout().buffers()[i].name,
                                 .offset_bytes = static_cast<int64_t>(content.size()),
                                 .length_bytes = static_cast<int64_t>(bytes.size()),
                                 .sha256 = halves ? "" : Sha256Hex(bytes),
                                 .checksum = halves ? ToHex(ChecksumOf(bytes)) : ""});
    content += bytes;
  }
  const absl::Status written = WriteFileAtomically(path, content);
  WS_CHECK(written.ok()) << written.ToString();
  return published;
}

}  // namespace warpsmith
