// A batch on a device that carries out StepPlans: a PagedBatch keeps its books.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_DEVICE_BATCH_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_DEVICE_BATCH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/device_turns.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/device/step_device.h"
#include "rollout_workers/paged/paged_batch.h"

namespace warpsmith {

// A step is planned and launched before the tokens of the one before it are read, so that the host's work is hidden
// behind the device's. A device that fails fails every job there is, the waiting ones included, with its message; later
// jobs try it again, unless it is lost: those of a lost one are UNAVAILABLE, for another worker may do them.
class PagedDeviceBatch final : public Batch {
 public:
  // `options` with num_pages of `device`. Steps and new weights are computed in `turns` on its GPUs, which go to
  // another process as soon as that waits for one. The errors of PagedBatch::Create; FAILED_PRECONDITION where the
  // pages do not hold one context.
  static absl::StatusOr<std::unique_ptr<PagedDeviceBatch>> Create(paged::PagedBatchOptions options,
                                                                  std::unique_ptr<device::StepDevice> device,
                                                                  DeviceTurns turns = {});
  ~PagedDeviceBatch() override;

  bool HoldDevice() override;
  void Rest() override;
  bool can_continue() const override { return true; }
  absl::Status SetWeights(const LoadedWeights& weights, paged::EntriesOnChange entries) override;
  absl::Status lost() const override;
  Outcome Settle() override;
  absl::Status Sleep(SleepDepth depth) override;
  absl::Status Wake() override;
  bool can_step() const override { return !refused_.empty() || is_ready(); }
  Outcome GiveUp(const absl::Status& status) override;
  void Add(GenerationJob job) override;
  void Remove(int64_t job_id) override;
  void RemoveSample(const SamplePlace& place) override;

  int num_active() const override { return paged_->status().num_running; }
  int num_waiting() const override;
  bool empty() const override {
    return refused_.empty() && paged_->empty() && paged_->num_steps_in_flight() == 0;
  }

  // Launches a step, if there is one, and reads the results of the one before it.
  Outcome Step() override;

  paged::PagedBatchStatus paged_status() const { return paged_->status(); }

 private:
  // One group of a job, as PagedBatch knows it.
  struct Request {
    int64_t job_id = 0;
    int task_index = 0;
    uint64_t policy_version = 0;
    bool reports_tokens = false;
    std::vector<int> sample_indexes;  // by index in the request, as has_token
    std::vector<bool> has_token;
    int num_left = 0;
    absl::Time started = absl::InfiniteFuture();
  };
  using Requests = absl::flat_hash_map<int64_t, Request>;

  PagedDeviceBatch(std::unique_ptr<paged::PagedBatch> paged, std::unique_ptr<device::StepDevice> device,
                   DeviceTurns turns);

  bool is_ready() const { return has_weights_ && !paged_->asleep() && lost().ok(); }
  absl::Status AddGroup(const GenerationJob& job, GenerationGroup group);
  void StepInTurn(Outcome* outcome);
  void SettleInto(Outcome* outcome);
  absl::StatusOr<bool> LaunchNext();
  absl::Status CompleteOldest(Outcome* outcome);
  void Report(paged::AnswerToken token, Outcome* outcome);
  void Report(paged::FinishedAnswer answer, absl::Time now, Outcome* outcome);
  std::vector<uint64_t> TokenVersions(const paged::FinishedAnswer& answer, uint64_t expected) const;
  void FailBroken(int64_t request_id, Outcome* outcome);
  void FailAll(const absl::Status& failure, Outcome* outcome);
  void EndAll(const absl::Status& status, Outcome* outcome);
  void CountLess(Requests::iterator request);

  const std::unique_ptr<device::StepDevice> device_;
  const std::unique_ptr<paged::PagedBatch> paged_;
  DeviceTurns turns_;
  bool has_weights_ = false;
  uint64_t num_loads_ = 0;  // the version by PagedBatch's count: the same policy may be loaded again
  std::map<uint64_t, uint64_t> version_of_load_;  // the policy's; of all loads since nothing was under way
  int64_t last_request_id_ = 0;
  Requests requests_;
  std::map<int64_t, std::vector<int64_t>> requests_of_job_;  // that are under way
  std::vector<FailedJob> refused_;                           // by PagedBatch; told by the next step
  paged::StepPlan plan_;                                     // its memory is used again
  int64_t num_prefilled_ = 0;                                // that were reported
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_DEVICE_BATCH_H_
