// Weights on offer as a rollout worker's RPC takes them.
#ifndef WARPSMITH_TESTS_SUPPORT_WEIGHTS_MANIFEST_H_
#define WARPSMITH_TESTS_SUPPORT_WEIGHTS_MANIFEST_H_

#include "rollout_workers/weights.h"
#include "warpsmith/v1/rollout_service.pb.h"

namespace warpsmith {

// Of a weights file.
inline v1::PrepareWeightsRequest PrepareRequestOf(const OfferedWeights& offered) {
  v1::PrepareWeightsRequest request;
  v1::WeightsManifest& manifest = *request.mutable_manifest();
  manifest.set_policy_version(offered.policy_version);
  manifest.set_path(offered.path);
  manifest.set_dtype(offered.dtype);
  manifest.set_layout_sha256(offered.layout_sha256);
  for (const OfferedBuffer& buffer : offered.buffers) {
    v1::WeightsBuffer& entry = *manifest.add_buffers();
    entry.set_name(buffer.name);
    entry.set_offset_bytes(buffer.offset_bytes);
    entry.set_length_bytes(buffer.length_bytes);
    entry.set_sha256(buffer.sha256);
  }
  return request;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_WEIGHTS_MANIFEST_H_
