#include "reward_service/referee/tensors/gpu_store.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// A process that was killed leaves the GPU within its turns, whatever it had running.
constexpr double kRecoverySeconds = 5;
constexpr int64_t kCopiedBytes = int64_t{1} << 30;
constexpr int kCopies = 5;
// What is written last need not replace all that was there.
constexpr int64_t kCacheFillings = 2;

}  // namespace

template <typename Use>
void GpuStore::Do(Use use) {
  absl::MutexLock lock(&mutex_);
  absl::Status status = context_->Enter();
  if (status.ok()) status = use();
  failure_.Update(status);
}

class GpuStore::Memory : public TensorMemory {
 public:
  Memory(GpuStore* store, std::unique_ptr<cuda::GpuMemory> memory, UniqueFd fd)
      : store_(store), memory_(std::move(memory)), fd_(std::move(fd)) {}
  ~Memory() override {
    store_->Do([this] {
      memory_.reset();
      return absl::OkStatus();
    });
  }

  int64_t num_bytes() const override { return memory_->num_bytes(); }
  void FillAll(unsigned char value) override {
    store_->Do([&] {
      // What lies behind them, to the end of the driver's unit, is cleared too: another process can write there.
      RETURN_IF_ERROR(memory_->Fill(0, 0, memory_->mapped_bytes()));
      return memory_->Fill(value, 0, memory_->num_bytes());
    });
  }
  void Fill(unsigned char value, int64_t offset, int64_t num_bytes) override {
    store_->Do([&] { return memory_->Fill(value, offset, num_bytes); });
  }
  void Write(const char* from, int64_t offset, int64_t num_bytes) override {
    store_->Do([&] { return memory_->Write(from, offset, num_bytes); });
  }
  const char* Read(int64_t offset, int64_t num_bytes) override {
    copy_.resize(static_cast<size_t>(num_bytes));
    store_->Do([&] { return memory_->Read(copy_.data(), offset, num_bytes); });
    return copy_.data();
  }
  int fd() const override { return fd_.get(); }
  // The driver's mappings say who may write; descriptors do not.
  int read_only_fd() const override { return fd_.get(); }

 private:
  GpuStore* const store_;
  std::unique_ptr<cuda::GpuMemory> memory_;
  const UniqueFd fd_;
  std::vector<char> copy_;
};

absl::StatusOr<std::unique_ptr<GpuStore>> GpuStore::Open(int index) {
  ASSIGN_OR_RETURN(auto context, cuda::GpuContext::Open(index));
  const cuda::Driver& driver = context->driver();
  int cache_bytes = 0;
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuDeviceGetAttribute(&cache_bytes, cuda::kL2CacheBytes, context->device()),
                   "cuDeviceGetAttribute"));
  ASSIGN_OR_RETURN(auto cache_filler, cuda::GpuMemory::Create(context.get(), kCacheFillings * cache_bytes));
  ASSIGN_OR_RETURN(auto probe, cuda::IdleProbe::Create(context.get()));
  return std::unique_ptr<GpuStore>(
      new GpuStore(std::move(context), std::move(cache_filler), std::move(probe)));
}

absl::StatusOr<std::unique_ptr<TensorMemory>> GpuStore::Make(int64_t num_bytes) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(context_->Enter());
  ASSIGN_OR_RETURN(auto memory, cuda::GpuMemory::Create(context_.get(), num_bytes));
  ASSIGN_OR_RETURN(UniqueFd fd, memory->Export());
  return std::make_unique<Memory>(this, std::move(memory), std::move(fd));
}

// What fails here is not kept: the program chose what was asked for.
absl::Status GpuStore::ReadForeign(std::string_view handle, int64_t offset, int64_t num_bytes, char* to) {
  cuda::IpcHandle opened;
  if (handle.size() != 2 * sizeof(opened.bytes) ||
      !std::all_of(handle.begin(), handle.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); })) {
    return absl::InvalidArgumentError("no handle of memory");
  }
  const std::string bytes = absl::HexStringToBytes({handle.data(), handle.size()});
  std::memcpy(opened.bytes, bytes.data(), sizeof(opened.bytes));
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(context_->Enter());
  return cuda::ReadForeign(*context_, opened, offset, num_bytes, to);
}

absl::StatusOr<double> GpuStore::AwaitDone(double seconds_max) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(context_->Enter());
  const absl::Time begin = absl::Now();
  const absl::Status status = probe_->AwaitIdle(seconds_max);
  if (absl::IsDeadlineExceeded(status)) return status;
  failure_.Update(status);
  RETURN_IF_ERROR(status);
  return std::max(0.0, absl::ToDoubleMicroseconds(absl::Now() - begin) - probe_->idle_us());
}

void GpuStore::MakeCold() {
  Do([this] { return cache_filler_->Fill(0, 0, cache_filler_->num_bytes()); });
}

absl::Status GpuStore::Health() {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(context_->Enter());
  failure_ = probe_->AwaitIdle(kRecoverySeconds);
  return failure_;
}

absl::StatusOr<double> GpuStore::MeasureCopying() {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(context_->Enter());
  ASSIGN_OR_RETURN(const auto from, cuda::GpuMemory::Create(context_.get(), kCopiedBytes));
  ASSIGN_OR_RETURN(const auto to, cuda::GpuMemory::Create(context_.get(), kCopiedBytes));
  RETURN_IF_ERROR(from->Fill(1, 0, kCopiedBytes));
  double best_us = 0;
  for (int i = 0; i < kCopies; ++i) {
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(to->Copy(*from));
    const double us = absl::ToDoubleMicroseconds(absl::Now() - begin);
    best_us = i == 0 ? us : std::min(best_us, us);
  }
  return 2.0 * static_cast<double>(kCopiedBytes) / (best_us * 1e3);
}

}  // namespace warpsmith
