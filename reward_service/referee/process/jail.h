// A jail as the referee sees it: buffers to fill, a clock to run, outputs to check. Candidates and baselines
// alike.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JAIL_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JAIL_H_

#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "reward_service/jail/messages.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/lane.h"
#include "reward_service/referee/process/child_process.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/process/start_line.h"
#include "reward_service/referee/process/strided_memory.h"
#include "reward_service/referee/tensors/draw.h"
#include "reward_service/referee/tensors/tensor_layout.h"
#include "reward_service/referee/tensors/tensor_store.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// Buffers of one jail, filled before each of its runs. Of outputs native jails have two, which rotate;
// Python jails none. Each has rooms, one for each call of a run. Where there are several, a run leaves one out at
// least, and nobody foresees which: a program that does the work of later calls in the first writes where it must not.
struct Buffers {
  TensorStore* store = nullptr;          // in which they lie; outlives them
  std::shared_ptr<TensorMemory> inputs;  // and parameters; may be another jail's, too: one runs at a time
  std::vector<std::unique_ptr<TensorMemory>> outputs;
  int num_rooms = 1;

  int calls_max() const { return num_rooms > 1 ? num_rooms - 1 : 1; }
};

// Of buffers for so many calls.
int NumRooms(int calls_max);

// Without inputs where it is given some of another jail.
absl::StatusOr<Buffers> MakeBuffers(TensorStore& store, const TaskLayout& layout, CandidateKind kind,
                                    int calls_max = 1, std::shared_ptr<TensorMemory> inputs = nullptr);

// What to load into a jail; descriptors are borrowed.
struct Program {
  CandidateKind kind = CandidateKind::kNative;
  int library_fd = -1;                          // native
  int source_fd = -1;                           // Python
  std::vector<int> extension_fds;               // Python
  std::string entry = jail::Begin::kCandidate;  // Python: the class,
  std::string form = jail::Begin::kEager;       // and how it is called
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
      : process_(std::move(process)), buffers_(std::move(buffers)), layout_(layout), limits_(limits) {
    for (int room = 0; room < buffers_.num_rooms; ++room) rooms_.push_back(static_cast<size_t>(room));
  }

  // Waits for the process; loads the program; leaves the jail stopped. With a lane, the process enters it
  // first. A status is a failure of the machine: the program was not asked for anything yet.
  absl::StatusOr<std::optional<Fault>> Begin(const Program& program, const Lane* lane);

  // Python: brings Torch's constants into memory again, off the clock. Only for a program that nobody
  // suspects: it runs meanwhile.
  std::optional<Fault> Refresh();
  // Fills inputs and parameters of so many calls, at most the buffers' calls_max(), in rooms drawn by lot, and poisons
  // the outputs whose turn it is, in all rooms.
  void Load(Batch draws);
  void Load(const Draw& draw) { Load(Batch({&draw})); }
  // Calls the program on what is loaded, once for each draw, and leaves the jail stopped. On a GPU each call ends
  // before the next one begins, and a run without calls has a turn there, too. Where the GPU is this judgement's alone
  // the clock starts when the program waits for it, and the GPU has other work until then. A fault is nobody's where
  // the store has a Failure().
  std::optional<Fault> Run();
  // Python: whether steady_us() is told, of runs from now on; it costs the program a little.
  void TellSteady(bool tells) { tells_steady_ = tells; }
  // After a Run(): one more call, on `draw`, of which nothing is timed or compared. What it launched on a GPU, in a
  // Profile's kernels and num_launches, by the process's own word. A status: it did not tell, and may have broken the
  // GPU. Afterwards only destruction makes sense.
  absl::StatusOr<v1::Profile> Profile(const Draw& draw);
  // Of runs from now on.
  void LimitCalls(double seconds_max) { limits_.call_seconds_max = seconds_max; }
  const JudgeLimits& limits() const { return limits_; }
  // Of the last run: from its release to the confirmed stop, on a GPU to the answer.
  double seconds() const { return seconds_; }
  // On a GPU: from the answer to the confirmed stop of the process and the proof that the GPU is idle; and how long it
  // worked before, when the call was loaded, for a GPU can wait for a value in memory and begin by itself.
  double after_seconds() const { return after_seconds_; }
  // Of the last run, by the word of the process, which is to be trusted of the reference alone: how long Python waited
  // for the GPU when it had made all calls.
  double waited_us() const { return waited_us_; }
  // Likewise, and where it was asked for: what the GPU took for a call, but for the first third of them, or 0.
  double steady_us() const { return steady_us_; }

  // After Run(): output `index` of one of its calls as dense bytes, valid until the next Load(). Python: shape, dtype
  // and mapping checked.
  absl::StatusOr<const void*> Output(size_t index, Fault& fault, size_t call = 0);
  // Python, after Run() and with the draws of the run before: output `index` of one of that run's calls as it is now.
  absl::StatusOr<const void*> FormerOutput(size_t index, Fault& fault, size_t call = 0);
  // The same outputs, compared where they lie, which is quicker: only whether all is right, and the largest error. A
  // status says that they must be fetched.
  absl::StatusOr<Comparison> CompareInPlace(size_t index, const Draw& draw, size_t call);
  absl::StatusOr<Comparison> CompareFormerInPlace(size_t index, const Draw& draw, size_t call);
  // Returns, after a Run() of Python, the fault of two outputs of a call that lie in the same memory, where the
  // reference's do not.
  std::optional<Fault> CheckApart(size_t call) const;
  // Guards and inputs of a call as they should be.
  std::optional<Fault> CheckBuffers(const Draw& draw, size_t call = 0) const;
  // Native: of the rooms that the last run left out, whether anything was written there, looked at in places of which
  // nobody knows.
  std::optional<Fault> CheckIdleRooms();
  // Python, after Run(): overwrites the inputs, so that an output which is a view of them shows; unless an
  // output of the reference is one. Load() or RestoreInputs() bring them back.
  std::optional<Fault> WithdrawInputs();
  void RestoreInputs(const Draw& draw, size_t call = 0);
  // Overwrites what Python on a GPU returned in the run before the last one, which no check reads any more. So memory
  // that was returned once has to be written again. REQUIRES: Load() follows.
  void PoisonFormerOutputs();
  // Returns the size of all memory that Python on a GPU has ever returned as outputs [bytes].
  int64_t returned_bytes() const { return returned_bytes_; }

  ChildProcess& process() { return *process_; }
  bool on_gpu() const { return buffers_.store->on_gpu(); }
  TensorStore& store() const { return *buffers_.store; }
  // Python: whether parameters of other values can be put into the model.
  bool parameters_loaded() const { return parameters_loaded_; }
  const std::shared_ptr<TensorMemory>& inputs() const { return buffers_.inputs; }
  // Whether nobody else is given what is written there.
  bool has_own_inputs() const { return buffers_.inputs.use_count() == 1; }
  Buffers TakeBuffers();  // ends the process first

 private:
  std::optional<Fault> CheckCode() const;
  bool is_alone() const;  // on a GPU, where nobody else computes
  absl::StatusOr<TimedAnswer> RunAtLine(const std::vector<size_t>& rooms,
                                        absl::FunctionRef<void()> before_stop);
  void AddBusy(const absl::StatusOr<double>& behind_us);
  int64_t InputEnd() const;  // of the inputs of a call, where parameters begin
  // A Python program's parameters lie in room 0: for the first call they are in place.
  bool KeepsFirstRoom() const { return buffers_.outputs.empty() && !layout_.parameters.empty(); }
  // Where a room begins, and that of a call.
  int64_t InputRoom(size_t room) const { return static_cast<int64_t>(room) * layout_.input_buffer_bytes; }
  int64_t OutputRoom(size_t room) const { return static_cast<int64_t>(room) * layout_.output_buffer_bytes; }
  int64_t InputStart(size_t call) const { return InputRoom(rooms_[call]); }
  int64_t OutputStart(size_t call) const { return OutputRoom(rooms_[call]); }
  Fault FaultOf(const absl::Status& status) { return FaultOf(status, limits_.call_seconds_max); }
  Fault FaultOf(const absl::Status& status, double seconds_max);
  Fault FaultOfStore(const absl::Status& status) const;
  Fault FaultOfAnswer(const Packet& packet);
  std::optional<Fault> CheckPlace(size_t index, const nlohmann::json& place) const;
  absl::Status ReadFromGpu(const nlohmann::json& place, const StridedTensor& tensor, char* dense);
  void NoteReturned();
  void CloseForeign();  // what the store has opened of this program's
  absl::StatusOr<Comparison> ComparePlace(const nlohmann::json& places, size_t index, const Draw& draw,
                                          size_t call);
  absl::StatusOr<const void*> ReadPythonOutput(const nlohmann::json& places, size_t call, size_t index,
                                               Fault& fault);

  std::unique_ptr<ChildProcess> process_;
  Buffers buffers_;
  TaskLayout layout_;
  JudgeLimits limits_;
  size_t slot_ = 0;            // of outputs
  size_t num_calls_ = 0;       // of the last run
  std::vector<size_t> rooms_;  // all of them; those of the last run's calls come first
  std::mt19937_64 random_{std::random_device()()};
  uint64_t poison_lot_ = 0;  // of the last Load()
  bool parameters_loaded_ = false;
  double seconds_ = 0;
  double after_seconds_ = 0;
  absl::StatusOr<double> ahead_us_ = 0.0;  // that the GPU worked when the last Load() had written all
  double waited_us_ = 0;
  double steady_us_ = 0;
  bool tells_steady_ = false;
  std::unique_ptr<StartLine> line_;  // on a GPU
  absl::StatusOr<double> busy_us_ =
      0.0;                        // of the last run: how much longer than known the GPU's other work took
  nlohmann::json places_;         // Python: of the outputs of the last run, call by call,
  nlohmann::json former_places_;  // and of the one before
  std::set<std::tuple<std::string, int64_t, int64_t>> returned_;  // places of outputs so far
  int64_t returned_bytes_ = 0;
  std::vector<std::vector<char>> copies_;
  std::set<std::string> handles_;  // of memory that the program made, told since its last run began
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_JAIL_H_
