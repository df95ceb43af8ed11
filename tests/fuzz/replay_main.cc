// Runs a fuzzer once over no bytes and over every file of a folder, where there is no libFuzzer.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "core/base/check.h"
#include "core/base/file.h"
#include "tests/fuzz/fuzz_input.h"

int main(int argc, char** argv) {
  WS_CHECK(argc == 2) << "usage: " << argv[0] << " FOLDER";
  LLVMFuzzerTestOneInput(nullptr, 0);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  WS_CHECK(!paths.empty()) << argv[1] << " is empty";
  for (const std::filesystem::path& path : paths) {
    std::fprintf(stderr, "%s\n", path.c_str());  // the last one is the one that failed
    const auto bytes = warpsmith::ReadFile(path);
    WS_CHECK(bytes.ok()) << bytes.status();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size());
  }
  return 0;
}
