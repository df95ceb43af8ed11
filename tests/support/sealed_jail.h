// Sealed jails of real zygotes, without a referee's judgement: what a program can do where libraries are
// withheld.
#ifndef WARPSMITH_TESTS_SUPPORT_SEALED_JAIL_H_
#define WARPSMITH_TESTS_SUPPORT_SEALED_JAIL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/unique_fd.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/process/zygote.h"

namespace warpsmith {

// One of each for all cases of a test program. They end the program when they do not start.
Zygote& TestNativeZygote();
Zygote& TestPythonZygote();

// What became of a program that was loaded and called some times on 64 x 64 floats and the number 2.
struct SealedRun {
  std::optional<Fault> fault;
  int num_calls = 0;          // runs that succeeded
  std::vector<float> input;   // of the last one's calls, one behind the other,
  std::vector<float> output;  // and what they made of it
  std::vector<float>
      loaded;  // of the last one's first call, what lay there before it was started: of one call a run,
  std::vector<float> loaded_parameter;  // and with a GPU its parameter of 0, 1, 2, ...
};

struct SealedOptions {
  bool sealed = true;
  bool withhold = true;
  int num_threads = 1;
  int calls_of_run = 1;
  bool gpu = false;  // native programs alone: on the fake one, where the test has made a FakeGpu
};

// `library` from CompileCandidate().
SealedRun RunNative(const UniqueFd& library, SealedOptions options = {});
// `extensions` from CompileExtension(), one for each load_inline call.
SealedRun RunPython(const std::string& source, const std::vector<int>& extensions = {},
                    SealedOptions options = {});

enum class ExtensionHeaders { kFacade, kLight, kTorch };

// The library of a load_inline call named "own" with this source, as the service builds it.
UniqueFd CompileExtension(const std::string& source, ExtensionHeaders headers);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_SEALED_JAIL_H_
