// A jail as the referee sees it: buffers to fill, a clock to run, outputs to check. Candidates and baselines
// alike.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JAIL_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JAIL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "reward_service/jail/messages.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/lane.h"
#include "reward_service/referee/process/child_process.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/tensors/draw.h"
#include "reward_service/referee/tensors/tensor_layout.h"
#include "reward_service/referee/tensors/tensor_store.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// Buffers of one jail, filled before each of its calls. Of outputs native jails have two, which rotate;
// Python jails none.
struct Buffers {
  TensorStore* store = nullptr;          // in which they lie; outlives them
  std::shared_ptr<TensorMemory> inputs;  // and parameters; may be another jail's, too: one runs at a time
  std::vector<std::unique_ptr<TensorMemory>> outputs;
};

absl::StatusOr<std::shared_ptr<TensorMemory>> MakeInputs(TensorStore& store, const TaskLayout& layout);
absl::StatusOr<std::vector<std::unique_ptr<TensorMemory>>> MakeOutputs(TensorStore& store,
                                                                       const TaskLayout& layout,
                                                                       CandidateKind kind);

// What to load into a jail; descriptors are borrowed.
struct Program {
  CandidateKind kind = CandidateKind::kNative;
  int library_fd = -1;                          // native
  int source_fd = -1;                           // Python
  std::vector<int> extension_fds;               // Python
  std::string entry = jail::Begin::kCandidate;  // Python: the class
  nlohmann::json init_inputs = nlohmann::json::array();
  int num_threads = 1;  // that it should use
  // Python: with parameters as the reference is constructed with, by which others are told apart; may be
  // null.
  const Draw* construction = nullptr;
  int64_t construction_seed = 0;  // Python: of the random numbers of its constructor
  // In a sealed jail alone. Python: once the model is constructed, libraries lose all code but what allocates,
  // views and frees tensors. Both kinds: the referee looks from outside whether other code is there than may be.
  bool withhold = false;
  // When it must be loaded, should that be before its CPU time could be used up.
  absl::Time deadline = absl::InfiniteFuture();
};

// One life, one program. One thread at a time. Methods that return Fault: nothing means all went well; once a
// fault was returned by Begin() or Run(), only its destruction makes sense.
class Jail {
 public:
  Jail(std::unique_ptr<ChildProcess> process, Buffers buffers, const TaskLayout& layout,
       const JudgeLimits& limits)
      : process_(std::move(process)), buffers_(std::move(buffers)), layout_(layout), limits_(limits) {}

  // Waits for the process; loads the program; leaves the jail stopped. With a lane, the process enters it
  // first.
  std::optional<Fault> Begin(const Program& program, const Lane* lane);

  // Python: brings Torch's constants into memory again, off the clock. Only for a program that nobody
  // suspects: it runs meanwhile.
  std::optional<Fault> Refresh();
  // Fills inputs and parameters, and poisons the outputs whose turn it is.
  void Load(const Draw& draw);
  // Calls the program on what is loaded and leaves the jail stopped.
  std::optional<Fault> Run();
  double seconds() const { return seconds_; }  // of the last call

  // After Run(): output `index` as dense bytes, valid until the next Load(). Python: shape, dtype and mapping
  // checked.
  absl::StatusOr<const void*> Output(size_t index, Fault& fault);
  // Python, after Run() and with the draw of the call before: output `index` of that call as it is now.
  absl::StatusOr<const void*> FormerOutput(size_t index, Fault& fault);
  // Guards and inputs as they should be.
  std::optional<Fault> CheckBuffers(const Draw& draw) const;
  // Python, after Run(): overwrites the inputs, so that an output which is a view of them shows; unless an
  // output of the reference is one. Load() or RestoreInputs() bring them back.
  void WithdrawInputs();
  void RestoreInputs(const Draw& draw);

  ChildProcess& process() { return *process_; }
  // Python: whether parameters of other values can be put into the model.
  bool parameters_loaded() const { return parameters_loaded_; }
  const std::shared_ptr<TensorMemory>& inputs() const { return buffers_.inputs; }
  Buffers TakeBuffers();  // ends the process first

 private:
  std::optional<Fault> CheckCode() const;
  int64_t InputEnd() const;  // of the inputs in their buffer, where parameters begin
  Fault FaultOf(const absl::Status& status);
  Fault FaultOfAnswer(const Packet& packet);
  std::optional<Fault> CheckPlace(size_t index, const nlohmann::json& place) const;
  absl::StatusOr<const void*> ReadPythonOutput(const nlohmann::json& places, size_t index, Fault& fault);

  std::unique_ptr<ChildProcess> process_;
  Buffers buffers_;
  TaskLayout layout_;
  JudgeLimits limits_;
  size_t slot_ = 0;  // of outputs
  bool parameters_loaded_ = false;
  double seconds_ = 0;
  nlohmann::json places_;         // Python: of the outputs of the last call,
  nlohmann::json former_places_;  // and of the one before
  std::vector<std::vector<char>> copies_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JAIL_H_
