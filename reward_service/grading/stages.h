// The two stages of work on a flight: compiling, which needs no lane, and judging, which holds one.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_STAGES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_STAGES_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/device_lease.h"
#include "reward_service/compiler/compiler.h"
#include "reward_service/grading/flight.h"
#include "reward_service/measure/referee.h"

namespace warpsmith {

// Where a flight goes after a stage.
enum class Route {
  kCompile,
  kJudge,
  kFinish,  // its measurement is complete
  kDrop,    // it was cancelled
};

// Where a new flight begins: with what it wants compiled, if it can want anything.
Route FirstRoute(const PreparedRequest& prepared);
// Whether a referee must first be asked which extensions the program wants: JudgeStage::Record().
bool WantsRecording(const Flight& flight);

// Of all load_inline calls of one candidate together: none begins to be built after so long, and the last one has
// its own limit (ExtensionCompilerOptions).
inline constexpr absl::Duration kExtensionsTimeMax = absl::Seconds(180);

// Thread-safe: compile workers share it.
class CompileStage {
 public:
  using CompileNative = std::function<absl::StatusOr<CompiledProgram>(const PreparedRequest& prepared,
                                                                      const std::atomic<bool>& cancelled)>;
  using CompileExtension = std::function<absl::StatusOr<CompiledProgram>(const ExtensionRecord& record,
                                                                         const std::atomic<bool>& cancelled)>;

  CompileStage(
      std::string compiler_version, int64_t program_bytes_max, CompileNative native,
      CompileExtension extension, std::function<absl::Time()> now = [] { return absl::Now(); })
      : compiler_version_(std::move(compiler_version)),
        program_bytes_max_(program_bytes_max),
        native_(std::move(native)),
        extension_(std::move(extension)),
        now_(std::move(now)) {}

  Route Run(Flight* flight) const;

 private:
  Route RunNative(Flight* flight) const;
  Route RunExtensions(Flight* flight) const;
  Route Failed(const absl::Status& status, Flight* flight) const;

  const std::string compiler_version_;
  const int64_t program_bytes_max_;
  const CompileNative native_;
  const CompileExtension extension_;
  const std::function<absl::Time()> now_;  // what building extensions is measured by
};

struct JudgeStageOptions {
  // What its referee measures on.
  v1::Device device = v1::DEVICE_CPU;
  JudgeLimits limits;
  TimingEffort timing;
  // A referee that dies is replaced, and the candidate judged again, this often in all.
  int num_attempts_max = 3;
  absl::Duration deadline = absl::Seconds(60);
  int num_at_once = 1;  // that its referee judges
};

// What else there is to do, and who else there is to do it.
struct LaneSurroundings {
  bool another_follows = false;  // a candidate of the same task waits
  bool others_serve = false;     // lanes of this device
};

// Empty where nobody else uses the device.
using HeldDevice = std::optional<DeviceLease::Held>;

// One lane. For one thread, but for Record(), and as many calls of Run() at a time as num_at_once().
class JudgeStage {
 public:
  // `lease` of its device, where other processes use that between the lane's judgements.
  JudgeStage(JudgeStageOptions options, std::unique_ptr<Referee> referee,
             std::optional<DeviceLease> lease = std::nullopt)
      : options_(options), referee_(std::move(referee)), lease_(std::move(lease)) {}

  // The device for a judgement, once no other process has it. DEADLINE_EXCEEDED after a second, so that whoever waits
  // can see whether he is still wanted.
  absl::StatusOr<HeldDevice> TakeDevice();
  // While it is held: whether another process waits for it.
  bool OthersWantDevice() const { return lease_.has_value() && lease_->IsWanted(); }

  // For a compile worker, beside whatever the lane judges: finds out which extensions a Python
  // program wants. kCompile: all is known, or it still wants a recording, for this referee failed
  // and `others_serve`; kJudge: it wants none, or the task is at fault, as the judgement will say.
  Route Record(Flight* flight, LaneSurroundings surroundings) const;
  // kJudge, with the flight as it was, where this lane was lost under it and others serve.
  Route Run(Flight* flight, LaneSurroundings surroundings = {});
  // The referee died and could not be started again: its GPU is gone, say. Until it could, or a judgement that began
  // since then has succeeded.
  bool is_lost() const { return is_lost_; }  // for any thread
  // Another process has had its device for a second at least, and nothing has been judged there since.
  bool is_lent() const { return is_lent_; }  // for any thread
  // Whether the lane can be used, if need be again. Takes its device meanwhile, which nobody has taken for it.
  bool Revive();
  void Prefetch(const TaskSource& task) { referee_->Prefetch(task); }
  v1::Device device() const { return options_.device; }
  int num_at_once() const { return options_.num_at_once; }

 private:
  // For whoever has the device.
  bool ReviveReferee() ABSL_LOCKS_EXCLUDED(revival_);
  // For a compile worker: takes the device, if others use it, beside the lane's own hold.
  absl::Status ReviveToRecord(absl::Time deadline) const;
  // That began when the lane had been lost so often.
  void NoteSuccess(int num_losses) ABSL_LOCKS_EXCLUDED(revival_);
  JudgeRequest RequestFor(const Flight& flight) const;
  // One attempt; `alone`: nothing else is judged on the lane meanwhile.
  absl::StatusOr<v1::Measurement> Attempt(const JudgeRequest& request, bool alone);

  const JudgeStageOptions options_;
  const std::unique_ptr<Referee> referee_;
  std::optional<DeviceLease> lease_;
  absl::Time waits_since_ = absl::InfiniteFuture();  // for its device; or when it last said so
  absl::Time last_wait_ = absl::InfinitePast();
  std::atomic<bool> is_lent_ = false;
  absl::Mutex
      revival_;  // judgements that fail together revive one after the other, and the last one's word counts
  std::atomic<bool> is_lost_ = false;  // changed under `revival_`
  std::atomic<int> num_losses_ = 0;    // likewise
  absl::Mutex others_;                 // shared by judgements that others may be made beside
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_STAGES_H_
