// Where the seconds of a judgement go, finer than the cost of a Grade: for the log alone.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_PHASE_CLOCK_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_PHASE_CLOCK_H_

#include <cstddef>
#include <string>

namespace warpsmith {

// What a judging thread is doing.
enum class Phase {
  kOther,      // what nothing below covers
  kTurn,       // waits for the device's turn
  kRest,       // waits until the device has nothing to do, before its turn begins
  kStart,      // waits for a process that has opened the device
  kBuffers,    // makes memory that is shared with it
  kProgram,    // has it load the program
  kFill,       // writes inputs, and poisons outputs
  kCold,       // fills the device's cache with something else
  kCall,       // the candidate's calls
  kIdle,       // the proof that the device has nothing to do
  kCompare,    // compares outputs and inputs
  kPrepare,    // has the reference load its program, and warms it, once a task
  kReference,  // all calls of the reference
  kPath,       // all calls of programs that do nothing
  kClocks,     // reads the device's clocks
  kEnd,        // ends the process
};
inline constexpr size_t kNumPhases = 16;

// While it lives the calling thread's seconds count for `phase`, and then again for the phase before. What is nested in
// kPrepare, kReference, kPath or kClocks counts for those.
class InPhase {
 public:
  explicit InPhase(Phase phase);
  ~InPhase();
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  const Phase former_;
};

// Seconds of the calling thread since its last report, by phase: "call 0.21, compare 0.05". Phases that took less than
// 5 ms are left out.
std::string TakePhaseReport();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_PHASE_CLOCK_H_
