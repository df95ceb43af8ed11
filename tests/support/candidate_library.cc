#include "tests/support/candidate_library.h"

#include <fcntl.h>

#include <cstdlib>
#include <map>
#include <string>

#include "core/base/check.h"
#include "core/base/file.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

UniqueFd Compile(const std::string& source) {
  const TemporaryDirectory directory;
  const std::string from = directory.path() / "candidate.cc";
  const std::string to = directory.path() / "candidate.so";
  WS_CHECK(WriteFileAtomically(from, source).ok()) << from;
  const std::string command = "g++ -std=c++17 -O3 -march=native -fopenmp -fPIC -shared -o " + to + " " + from;
  WS_CHECK(std::system(command.c_str()) == 0) << source;
  return UniqueFd(open(to.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

UniqueFd CompileCandidate(const std::string& source) {
  static std::map<std::string, UniqueFd> compiled;
  const auto found = compiled.find(source);
  const UniqueFd& library =
      found != compiled.end() ? found->second : compiled.emplace(source, Compile(source)).first->second;
  // With an offset of its own.
  return UniqueFd(open(("/proc/self/fd/" + std::to_string(library.get())).c_str(), O_RDONLY | O_CLOEXEC));
}

std::string CandidateBody(const std::string& statements, const std::string& head) {
  return R"(#include <dlpack/dlpack.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
)" + head +
         R"(
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs) {
  float* x = static_cast<float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  int64_t n = 1;
  for (int d = 0; d < outputs[0]->ndim; ++d) n *= outputs[0]->shape[d];
  (void)x; (void)y; (void)parameters;
)" + statements +
         R"(
  return 0;
}
)";
}

}  // namespace warpsmith
