// What a program did wrong, whatever it ran on.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_FAULT_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_FAULT_H_

#include <string>
#include <string_view>

#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// Whether these words, of a program or of Torch, say that memory was wanting: the GPU's, or a library's there.
bool SaysWantOfMemory(std::string_view words);

// Whether they say that the GPU itself failed, which no program's own fault makes them say: it is unavailable, its
// memory has an error, or nobody knows what it has.
bool SaysDeviceFailed(std::string_view words);

struct Fault {
  v1::Verdict verdict = v1::VERDICT_RUNTIME_ERROR;
  std::string reason;
  bool input_mutated = false;
  bool out_of_bounds = false;  // wrote to a guard, or crashed just outside a buffer
  std::string hack_family;     // with VERDICT_HACK
  bool withheld = false;       // it ended where a library's code is withheld
  bool killed = false;         // by SIGKILL: for want of the host's memory, unless it did so itself
};

// A process that has code which is withheld from it.
inline constexpr char kWithheldCodeFamily[] = "withheld-code";

// Outputs that were not written as the reference writes them: views of inputs, expanded elements.
inline constexpr char kUnmaterialisedFamily[] = "unmaterialised-output";

// A timed call that ended before its outputs can have been written.
inline constexpr char kImpossibleTimeFamily[] = "impossible-time";

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_FAULT_H_
