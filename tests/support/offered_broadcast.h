// A broadcast of weights as the switch of a worker takes it.
#ifndef WARPSMITH_TESTS_SUPPORT_OFFERED_BROADCAST_H_
#define WARPSMITH_TESTS_SUPPORT_OFFERED_BROADCAST_H_

#include "core/model/offered_memory.h"
#include "rollout_workers/weight_transport.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

inline OfferedWeights ToOffered(const OfferedBroadcast& broadcast) {
  OfferedWeights offered{.policy_version = broadcast.memory.version,
                         .transport = kNcclTransport,
                         .dtype = "bfloat16",
                         .layout_sha256 = broadcast.memory.layout_sha256,
                         .place = broadcast.place};
  for (const MemoryBuffer& buffer : broadcast.memory.buffers) {
    offered.buffers.push_back({.name = buffer.name,
                               .offset_bytes = buffer.offset_bytes,
                               .length_bytes = buffer.length_bytes,
                               .checksum = buffer.checksum});
  }
  return offered;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_OFFERED_BROADCAST_H_
