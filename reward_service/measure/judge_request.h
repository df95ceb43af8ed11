// What is asked of a referee: plain values, free of protobuf.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_JUDGE_REQUEST_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_JUDGE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace warpsmith {

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
  bool with_cuda = false;  // CUDA's headers and runtime are for it
  // In place of all that: the program's Triton kernels, a list as jail/triton_kernels.py writes it.
  std::string kernels;
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

// Rounds of one instance, at most: input sets are drawn for as many.
inline constexpr int kRoundsMax = 3;
// Input sets of one: two batches of so many calls, and where these are more than one a call alone.
constexpr int DrawsOfRound(int num_batched_calls) {
  return 2 * num_batched_calls + (num_batched_calls > 1 ? 1 : 0);
}

// How much timing a speed-up is worth: more of it, less scatter. Instances are fresh processes of the
// candidate; a round times reference, candidate, candidate, reference (one candidate where calls are long), and
// where these are batches a lone call of each.
struct TimingEffort {
  int num_instances_min = 5;
  // An interval wider than `relative_width_max` of its middle, or of 1, asks for another instance, up to this many.
  int num_instances_max = 9;
  int num_rounds_max = kRoundsMax;  // of an instance; slow candidates get one
  double relative_width_max = 0.05;
  // On a GPU: keys of the ReferenceForms that are timed beside the eager one, once a task.
  std::vector<std::string> baselines = {};
};

struct JudgeRequest {
  TaskSource task;
  CandidateKind kind = CandidateKind::kNative;
  // kNative: file descriptor of the shared library; borrowed, read from offset 0, any regular file or memfd.
  int library_fd = -1;
  // The task allows products of matrices and convolutions by libraries: a native program is linked to cuBLAS and cuDNN
  // on a GPU, and a Python program is judged first where they run.
  bool with_blas = false;
  bool with_torch = false;    // the task allows a Python program all libraries
  bool with_streams = false;  // on a GPU: it may have kernels run beside each other
  // kKernelBenchPython: the program, and libraries for its ExtensionRecords in their order (borrowed
  // descriptors).
  std::string source;
  std::vector<int> extension_fds;
  JudgeLimits limits;
  TimingEffort timing;
  bool verify_only = false;  // otherwise a correct candidate is timed and profiled
  // Another judgement of the task waits: draws for it are made during this one.
  bool another_follows = false;
  // Tests only: makes the draws repeatable. Absent: from the kernel's random source, known to the referee
  // alone.
  std::optional<uint64_t> seed;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_JUDGE_REQUEST_H_
