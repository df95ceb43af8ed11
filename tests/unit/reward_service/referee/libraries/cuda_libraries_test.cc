#include "reward_service/referee/libraries/cuda_libraries.h"

#include <algorithm>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A folder for a driver, with a link of this name to a file of that one.
struct Folder {
  Folder(const char* link, const char* file) {
    std::filesystem::create_symlink(file, folder.path() / link);
    driver = folder.path() / "libcuda.so.1";
  }
  const TemporaryDirectory folder;
  std::filesystem::path driver;
};

TEST_CASE(
    "a profiler beside the driver comes first, by its real path, and a runtime there is not looked at") {
  const Folder beside("libcupti.so.13", "libcupti.so.2025.3.1");
  REQUIRE(WriteFileAtomically(beside.folder.path() / "libcupti.so.2025.3.1", "").ok());
  REQUIRE(WriteFileAtomically(beside.folder.path() / "libcudart.so.13", "").ok());
  const auto libraries = FindCudaLibraries(beside.driver);
  if (absl::IsNotFound(libraries.status())) return;  // neither Torch nor a toolkit has a runtime here
  REQUIRE(libraries.ok());
  const std::filesystem::path folder = std::filesystem::canonical(beside.folder.path());
  CHECK(libraries->profiler == folder / "libcupti.so.2025.3.1");
  CHECK(libraries->runtime.parent_path() != folder);
}

TEST_CASE("a link to a profiler that is gone is passed over") {
  const Folder beside("libcupti.so.13", "gone");
  const auto libraries = FindCudaLibraries(beside.driver);
  if (absl::IsNotFound(libraries.status())) return;
  REQUIRE(libraries.ok());
  CHECK(libraries->profiler.parent_path() != std::filesystem::canonical(beside.folder.path()));
}

TEST_CASE("cuBLAS comes before what needs it, and cuDNN behind its parts") {
  const auto libraries = FindBlasLibraries("/nowhere/libcuda.so.1");
  if (absl::IsNotFound(libraries.status())) {
    CHECK_THAT(std::string(libraries.status().message()), Catch::Contains("install nvidia-cublas"));
    return;
  }
  REQUIRE(libraries.ok());
  const auto place = [&](const char* name) {
    return std::find_if(libraries->begin(), libraries->end(),
                        [&](const std::filesystem::path& file) {
                          return file.filename().string().rfind(name, 0) == 0;
                        }) -
           libraries->begin();
  };
  CHECK(place("libcublasLt.so.") < place("libcublas.so."));
  CHECK(place("libcudnn_graph.so.") <= place("libcudnn_cnn.so."));
  CHECK(libraries->back().filename().string().rfind("libcudnn.so.", 0) == 0);
}

}  // namespace
}  // namespace warpsmith
