// Scalars in TensorBoard's event file format.
//
// A file is a row of records, each: length (8 bytes, little-endian), masked CRC-32C of the length, data,
// masked CRC-32C of the data (tensorflow/core/lib/io/record_writer.cc). The data is a tensorflow.Event; of it
// and of Summary six fields are used, encoded by hand: registering a copy of those protos would clash with a
// process that has them.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_TENSORBOARD_WRITER_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_TENSORBOARD_WRITER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "trainer/run_folder/append_file.h"

namespace warpsmith {

// A name and a finite number; names with the same part before '/' are shown together.
using NamedScalar = std::pair<std::string, double>;

// Holds what was written at a step.
struct ScalarEvent {
  int64_t step = 0;
  std::vector<NamedScalar> scalars;
};

// One file of events. Not thread-safe.
class TensorboardWriter {
 public:
  // Creates "events.out.tfevents.<seconds>.warpsmith.<pid>" in `directory`, which must exist, with the events `former`
  // of the run's earlier attempts, and removes the files that those left: so each event is there once, also for a
  // TensorBoard that has read them. An event keeps the time that it had in those files, in their order; others get
  // `now`.
  static absl::StatusOr<TensorboardWriter> Create(const std::filesystem::path& directory, absl::Time now,
                                                  const std::vector<ScalarEvent>& former = {});

  absl::Status Write(int64_t step, absl::Time now, const std::vector<NamedScalar>& scalars);

 private:
  explicit TensorboardWriter(AppendFile file);

  AppendFile file_;
};

// One record of the file around `data`.
std::string FrameRecord(const std::string& data);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_TENSORBOARD_WRITER_H_
