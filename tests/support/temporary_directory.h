// A folder that lives as long as a test.
#ifndef WARPSMITH_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
#define WARPSMITH_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/check.h"

namespace warpsmith {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "warpsmith.XXXXXX";
    WS_CHECK(mkdtemp(name.data()) != nullptr) << name;
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
