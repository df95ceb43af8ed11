// Tensors on a GPU, which the jail that computes there has mapped.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_GPU_STORE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_GPU_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "reward_service/cuda/gpu_memory.h"
#include "reward_service/cuda/late_words.h"
#include "reward_service/cuda/tensor_kernels.h"
#include "reward_service/referee/tensors/occupation.h"
#include "reward_service/referee/tensors/tensor_store.h"

namespace warpsmith {

// A process that was killed leaves the GPU within its turns, whatever it had running.
inline constexpr double kRecoverySeconds = 5;

// Thread-safe; a judgement's thread should be alone with it all the same, for what others do is on its clock.
class GpuStore : public TensorStore {
 public:
  // With nobody else on the GPU: what an idle one takes for a probe is measured here.
  static absl::StatusOr<std::unique_ptr<GpuStore>> Open(int index);

  absl::StatusOr<std::unique_ptr<TensorMemory>> Make(int64_t num_bytes) override;
  // What is kept on the host is locked there, and the GPU reads it across the bus. RESOURCE_EXHAUSTED also where that
  // would be more than set_host_draw_bytes_max() allows.
  absl::StatusOr<OwnTensors> Keep(TensorMemory& memory, int64_t offset, int64_t num_bytes,
                                  KeptIn where) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Copy(const std::vector<TensorCopy>& copies, TensorMemory* to) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<double> GiveLateWords() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Settle() override;
  int64_t device_bytes() const override { return device_bytes_; }
  // Of these, what nobody has now. Waits for no work of this.
  absl::StatusOr<int64_t> FreeBytes() const;
  // Who looked found little left, or somebody found none. A look is LookAtMemory().
  bool WasScarceSince(absl::Time since) override ABSL_LOCKS_EXCLUDED(scarcity_mutex_);
  void LookAtMemory() ABSL_LOCKS_EXCLUDED(scarcity_mutex_);
  void NoteScarcity() ABSL_LOCKS_EXCLUDED(scarcity_mutex_);  // it was so until now
  bool IsCrowded(int64_t own_bytes) const override;
  bool on_gpu() const override { return true; }
  DeviceTurn* turn() override { return &turn_; }
  FewAtATime* drawing() override { return &drawing_; }
  bool HasPlenty() override;
  bool EndWaiting() override;
  // What may be kept on the host; nothing before this is called. Once, before anybody else knows this.
  void set_host_draw_bytes_max(int64_t num_bytes) { host_draw_bytes_max_ = num_bytes; }
  // What ends those who wait: likewise.
  void set_end_waiting(std::function<bool()> end_waiting) { end_waiting_ = std::move(end_waiting); }
  absl::Status ReadForeign(std::string_view handle, int64_t offset, int64_t num_bytes, char* to) override;
  absl::StatusOr<Comparison> CompareInPlace(const ExpectedOutput& expected, TensorMemory& memory,
                                            int64_t offset) override;
  absl::StatusOr<Comparison> CompareForeign(const ExpectedOutput& expected,
                                            const ForeignPlace& place) override;
  void FillForeign(unsigned char value, std::string_view handle, int64_t offset, int64_t num_bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseForeign(const std::set<std::string>& handles) override;
  absl::StatusOr<double> AwaitDone(double seconds_max) override;
  void Occupy() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<double> AwaitOccupied() override ABSL_LOCKS_EXCLUDED(mutex_);
  void MakeCold() override;
  absl::Status Health() override;
  absl::Status Failure() override {
    absl::MutexLock lock(&mutex_);
    return failure_;
  }

  // What the memory gives and takes when it copies itself, reads and writes added [GB/s].
  absl::StatusOr<double> MeasureCopying();

 private:
  class Memory;

  // With one place oracles waited for it, and with it for the turn, most of the time that there was.
  static constexpr int kDrawingAtOnce = 3;

  GpuStore(int64_t device_bytes, std::unique_ptr<cuda::GpuContext> context,
           std::unique_ptr<cuda::GpuMemory> cache_filler, std::unique_ptr<cuda::IdleProbe> probe,
           std::unique_ptr<cuda::TensorKernels> kernels, std::unique_ptr<cuda::LateWords> late_words,
           std::unique_ptr<cuda::MemoryPool> pool)
      : device_bytes_(device_bytes),
        context_(std::move(context)),
        cache_filler_(std::move(cache_filler)),
        probe_(std::move(probe)),
        kernels_(std::move(kernels)),
        late_words_(std::move(late_words)),
        pool_(std::move(pool)),
        occupation_(context_.get(), cache_filler_.get()) {}
  absl::StatusOr<std::unique_ptr<cuda::ForeignMemory>> OpenForeign(std::string_view handle)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As it was opened before, where it was: that takes longer than to compare what is there. Until the program runs.
  absl::StatusOr<const cuda::ForeignMemory*> FindForeign(std::string_view handle)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Memory for tensors that are kept, from the pool and back: draws come and go, and new memory takes longer than they
  // do.
  absl::StatusOr<std::unique_ptr<cuda::GpuMemory>> Take(int64_t num_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Likewise of the host's, where what is freed stays for draws of the same size until the last of all is freed.
  absl::StatusOr<std::unique_ptr<cuda::GpuMemory>> TakeOnHost(int64_t num_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  bool MakeRoomOnHost(int64_t num_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReturnUnusedOfHost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // where nothing is kept there
  void Free(std::unique_ptr<cuda::GpuMemory> memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Comparison> CompareAt(const ExpectedOutput& expected, cuda::Address actual)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of elements that lie apart: as above, of a copy without gaps.
  absl::StatusOr<Comparison> CompareApart(const ExpectedOutput& expected, const cuda::Places& places,
                                          cuda::Address actual) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::string> DescribeFirst(const ExpectedOutput& expected, int64_t index,
                                            cuda::Address actual) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `use` with the context as the calling thread's, and keeps its first failure.
  template <typename Use>
  void Do(Use use) {
    absl::MutexLock lock(&mutex_);
    absl::Status status = context_->Enter();
    if (status.ok()) status = use();
    failure_.Update(status);
  }

  const int64_t device_bytes_;
  DeviceTurn turn_;                     // never taken by this
  FewAtATime drawing_{kDrawingAtOnce};  // likewise
  std::function<bool()> end_waiting_;
  int64_t host_draw_bytes_max_ = 0;
  absl::Mutex mutex_;
  const std::unique_ptr<cuda::GpuContext> context_;
  const std::unique_ptr<cuda::GpuMemory> cache_filler_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<cuda::IdleProbe> probe_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<cuda::TensorKernels> kernels_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<cuda::LateWords> late_words_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<cuda::MemoryPool> pool_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<cuda::ForeignMemory>, std::less<>> foreign_
      ABSL_GUARDED_BY(mutex_);  // by handle
  // Unused in the pool when it had last returned what it could: parts of larger pieces.
  int64_t stuck_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t host_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of tensors that are kept there, not of what is unused
  std::multimap<int64_t, std::unique_ptr<cuda::GpuMemory>> unused_on_host_
      ABSL_GUARDED_BY(mutex_);  // by bytes
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Occupation occupation_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex scarcity_mutex_;
  absl::Time last_scarce_ ABSL_GUARDED_BY(scarcity_mutex_) = absl::InfinitePast();
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_GPU_STORE_H_
