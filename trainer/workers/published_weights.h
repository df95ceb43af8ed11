// Where published weights lie; see warpsmith.v1.WeightsManifest.
#ifndef WARPSMITH_TRAINER_WORKERS_PUBLISHED_WEIGHTS_H_
#define WARPSMITH_TRAINER_WORKERS_PUBLISHED_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace warpsmith {

struct PublishedBuffer {
  std::string name;
  int64_t offset_bytes = 0;
  int64_t length_bytes = 0;
  std::string sha256;    // in hex; empty: there is a checksum
  std::string checksum;  // ToHex of core/kernels/memory_checksum.h; empty: there is a SHA-256
};

struct PublishedWeights {
  uint64_t policy_version = 0;
  std::string transport = "file";
  std::string path;
  std::string dtype;
  std::vector<PublishedBuffer> buffers;
  std::string layout_sha256;
  std::map<std::string, std::string> model_fields;  // FieldsOf (core/model/model_fields.h)
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_PUBLISHED_WEIGHTS_H_
