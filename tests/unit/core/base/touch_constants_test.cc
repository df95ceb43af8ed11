#include "core/base/touch_constants.h"

#include <fstream>
#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Kilobytes of the read-only mappings of a library that are in memory.
int64_t ResidentKilobytes(const std::string& library) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  int64_t total = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') != std::string::npos && line.find(" r") != std::string::npos) {
      inside = line.find(library) != std::string::npos && line.find(" r--p ") != std::string::npos;
    } else if (inside && line.rfind("Rss:", 0) == 0) {
      total += std::stoll(line.substr(4));
    }
  }
  return total;
}

TEST_CASE("every page of a library's constants is in memory afterwards") {
  const int64_t num_pages = TouchConstants("libstdc++");
  CHECK(num_pages > 50);
  CHECK(ResidentKilobytes("libstdc++") >= num_pages * 4);
}

TEST_CASE("objects of another name are left alone, and an empty name means all") {
  CHECK(TouchConstants("libnothing") == 0);
  CHECK(TouchConstants("") > TouchConstants("libstdc++"));
}

}  // namespace
}  // namespace warpsmith
