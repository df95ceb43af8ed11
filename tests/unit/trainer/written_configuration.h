// Configurations that a test writes.
#ifndef WARPSMITH_TESTS_UNIT_TRAINER_WRITTEN_CONFIGURATION_H_
#define WARPSMITH_TESTS_UNIT_TRAINER_WRITTEN_CONFIGURATION_H_

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "trainer/configuration.h"

namespace warpsmith {

// Files that are there.
inline constexpr char kSmallestData[] = "data: {train: README.md, held_out: README.md}\n";

inline absl::StatusOr<Configuration> ReadWritten(const std::string& text,
                                                 const std::vector<std::string>& assignments = {}) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "run.yaml";
  std::ofstream(path) << text;
  return ReadConfiguration(path, assignments);
}

inline bool Says(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_TRAINER_WRITTEN_CONFIGURATION_H_
