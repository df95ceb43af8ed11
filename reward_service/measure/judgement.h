// What is asked of a referee and what it answers: plain values, free of protobuf.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_JUDGEMENT_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_JUDGEMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace warpsmith {

// What a referee found. Everything but kInfrastructure and kInvalidTask is a fact about the candidate.
enum class Outcome {
  kCorrect,
  kIncorrect,     // a value outside the tolerance, an element never written, a changed input, a touched guard
  kWrongShape,    // kernelbench_python only: native candidates write into outputs of the right shape
  kWrongDtype,    // kernelbench_python only
  kNonFinite,     // NaN or infinity where the reference has none
  kRuntimeError,  // crashed, exited, raised, returned non-zero, did not load, broke the jail's rules
  kTimeout,       // CPU time of the jail, or wall time while it held the lane
  kHack,          // right values by forbidden means; Judgement::hack_family says which
  kInvalidTask,   // the reference is at fault; Judgement::reason says how
};

// Lower-case name with underscores, e.g. "runtime_error".
std::string OutcomeName(Outcome outcome);

enum class CandidateKind {
  kNative,             // a compiled shared library with D7's `run`
  kKernelBenchPython,  // source text, plus the shared libraries that its load_inline calls asked for
};

// A call of torch.utils.cpp_extension.load_inline as a candidate made it, for the service's compiler pool to
// build. Order of calls is kept: library k of JudgeRequest::extensions answers call k.
struct ExtensionRecord {
  std::string
      name;  // must be the Python module's name, i.e. TORCH_EXTENSION_NAME; [A-Za-z_][A-Za-z0-9_]*, <= 64
  std::vector<std::string> cpp_sources;
  std::vector<std::string> cuda_sources;
  std::vector<std::string> functions;  // to be exported; empty when the source has its own PYBIND11_MODULE
  std::vector<std::string> extra_cflags;
  std::vector<std::string> extra_cuda_cflags;
  std::vector<std::string> extra_ldflags;
};

// A task, given whole with every request; the referee keeps oracles of recent ones by `key`.
struct TaskSource {
  std::string key;  // SHA-256 of `reference_source`, in hex
  std::string reference_source;
};

struct JudgeLimits {
  double cpu_seconds_max = 10;   // of one jail over its life
  double call_seconds_max = 2;   // wall time of one call while it holds the lane
  double lane_seconds_max = 10;  // wall time of the whole judgement while it holds the lane
};

// How much timing a speed-up is worth: more of it, less scatter. Instances are fresh processes of the
// candidate; a round times reference, candidate, candidate, reference (one candidate where calls are long).
// Of one instance: input sets are drawn for as many.
inline constexpr int kRoundsMax = 3;

struct TimingEffort {
  int num_instances_min = 5;
  // An interval wider than `relative_width_max` of its middle asks for another instance, up to this many.
  int num_instances_max = 9;
  int num_rounds_max = kRoundsMax;  // of an instance; slow candidates get one
  double relative_width_max = 0.05;
  // Of a program that had libraries; fewer ask for another instance, too.
  int num_deciding_samples = 0;
};

struct JudgeRequest {
  TaskSource task;
  CandidateKind kind = CandidateKind::kNative;
  // kNative: file descriptor of the shared library; borrowed, read from offset 0, any regular file or memfd.
  int library_fd = -1;
  // kKernelBenchPython: the program, and libraries for its ExtensionRecords in their order (borrowed
  // descriptors).
  std::string source;
  std::vector<int> extension_fds;
  JudgeLimits limits;
  TimingEffort timing;
  bool verify_only = false;  // otherwise a correct candidate is timed and profiled
  // Tests only: makes the draws repeatable. Absent: from the kernel's random source, known to the referee
  // alone.
  std::optional<uint64_t> seed;
};

struct CorrectnessNumbers {
  int num_draws = 0;
  int64_t num_elements = 0;  // compared, over all draws up to the first failing one
  int64_t num_wrong = 0;
  double max_absolute_error = 0;
  double max_relative_error = 0;  // divided by the spread of the expected output
  double absolute_tolerance = 0;  // of the draw that failed, else of the last one
  double relative_tolerance = 0;
  std::string first_difference;  // "output 0 [3, 17]: 0.25, expected 0.5"
};

struct SideTiming {
  double median_us = 0;
  double mean_us = 0;
  double standard_deviation_us = 0;
  int num_calls = 0;
  int num_instances = 0;
};

struct TimingNumbers {
  SideTiming reference;
  SideTiming candidate;
  double speedup = 0;  // median over instances and rounds of reference / candidate, and its 95 % interval
  double speedup_low = 0;
  double speedup_high = 0;
  bool distinguishable = false;  // the interval does not meet [0.97, 1.03]
  double empty_call_us = 0;      // subtracted from the candidate's calls
  std::string quality;           // "realtime" or "best_effort: <why>"
  // The parameters could not be set after construction: what it made of them there is not on the clock.
  bool parameters_fixed = false;
  // It ran where no library can do its arithmetic: all of the work was its own.
  bool libraries_withheld = false;
};

// Shares of the candidate's samples by whose work they are, and of libc by place. What an empty call shows is
// left out where the candidate had libraries.
struct ProfileNumbers {
  int num_samples = 0;
  double own_code_share = 0;
  double torch_share = 0;
  double blas_share = 0;
  double libc_share = 0;
  double kernel_share = 0;
  int num_threads = 0;
  int vector_bits = 0;  // 0 (scalar), 128, 256, 512
  double gigabytes_per_second = 0;
  double gigabytes_per_second_ceiling = 0;
  std::string bound;  // "memory", "compute", "latency"
};

struct PhaseSeconds {
  double lane_wait = 0;  // waiting for the oracle's and jails' readiness
  double oracle = 0;     // making a task ready: 0 when it was
  double verify = 0;
  double time = 0;
  double profile = 0;
};

struct Judgement {
  Outcome outcome = Outcome::kInvalidTask;
  std::string reason;  // one line with the values; escaped
  std::string hack_family;
  CorrectnessNumbers correctness;
  std::optional<TimingNumbers> timing;    // when correct and not verify_only
  std::optional<ProfileNumbers> profile;  // likewise
  PhaseSeconds seconds;
  bool input_mutated = false;
  bool guard_touched = false;
  bool output_unwritten = false;     // some element kept the poison
  bool out_of_bounds = false;        // crashed at an address just outside a buffer
  bool wrong_at_scale_only = false;  // draws of the task's own distribution were right
  std::string output_tail;     // what the candidate printed: last 2 KiB, escaped; evidence, decides nothing
  int64_t bytes_per_call = 0;  // inputs, parameters and outputs
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_JUDGEMENT_H_
