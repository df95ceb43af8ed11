#include "reward_service/referee/libraries/emptied_libraries.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "core/base/file.h"
#include "core/base/memory_file.h"
#include "reward_service/cubin/cubin.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr int64_t kBytesMax = int64_t{64} << 20;

// Makes what a compiler writes: code of the host around kernels.
std::string Library(const std::string& cubin) {
  return "host code" + *ReadFile("tests/data/cubin/" + cubin) + "more host code";
}

std::string EmptiedText(std::string library) {
  REQUIRE(EmptyKernels(&library) > 0);
  return library;
}

std::string ReadBack(const UniqueFd& file) { return *ReadMemoryFile(file.get(), kBytesMax); }

TEST_CASE("a native program's library is copied with its kernels emptied, and itself left as it is") {
  const std::string library = Library("loads.sm_90a.cubin");
  const UniqueFd file = *SealedMemoryFile(library);
  JudgeRequest request;
  request.library_fd = file.get();
  request.extension_fds = {-1};  // which a native program has none of
  const auto emptied = EmptiedLibraries(request);
  REQUIRE(emptied.ok());
  REQUIRE(emptied->size() == 1);
  CHECK(ReadBack(emptied->front()) == EmptiedText(library));
  CHECK(ReadBack(emptied->front()) != library);
  CHECK(ReadBack(file) == library);
  CHECK(write(emptied->front().get(), "x", 1) < 0);
}

TEST_CASE("a Python program's extensions are emptied in their order, and code of a CPU stays") {
  const std::string first = Library("loads.sm_90a.cubin"), third = Library("shared.sm_90a.cubin");
  const UniqueFd files[] = {*SealedMemoryFile(first), *SealedMemoryFile("host code alone"),
                            *SealedMemoryFile(third)};
  JudgeRequest request;
  request.kind = CandidateKind::kKernelBenchPython;
  for (const UniqueFd& file : files) request.extension_fds.push_back(file.get());
  const auto emptied = EmptiedLibraries(request);
  REQUIRE(emptied.ok());
  REQUIRE(emptied->size() == 3);
  CHECK(ReadBack((*emptied)[0]) == EmptiedText(first));
  CHECK(ReadBack((*emptied)[1]) == "host code alone");
  CHECK(ReadBack((*emptied)[2]) == EmptiedText(third));
  request.extension_fds.clear();
  CHECK(EmptiedLibraries(request)->empty());
}

TEST_CASE("a library that cannot be read, or is larger than compilers may write, is the machine's failure") {
  const TemporaryDirectory folder;
  const UniqueFd large(open((folder.path() / "large").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(ftruncate(large.get(), kBytesMax + 1) == 0);
  JudgeRequest request;
  request.library_fd = large.get();
  CHECK(absl::IsInternal(EmptiedLibraries(request).status()));
  request.library_fd = -1;
  CHECK(absl::IsInternal(EmptiedLibraries(request).status()));
}

}  // namespace
}  // namespace warpsmith
