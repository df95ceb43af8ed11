#include "reward_service/referee/profile_sampler.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// A sample costs about 15 us in a virtual machine: more of them would show themselves.
constexpr uint64_t kPeriodNs = 60'000;
constexpr size_t kPageBytes = 4096;
constexpr size_t kDataBytes = 16 * kPageBytes;
constexpr size_t kRingBytes = kPageBytes + kDataBytes;
// A width counts when at least this share of the samples in own code has it.
constexpr double kWidthShareMin = 0.1;

perf_event_attr Attributes() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof(attributes);
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = kPeriodNs;
  attributes.sample_type = PERF_SAMPLE_IP;
  attributes.inherit = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = kDataBytes;
  return attributes;
}

int OpenEvent(pid_t thread, int core) {
  perf_event_attr attributes = Attributes();
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, core, -1, PERF_FLAG_FD_CLOEXEC));
}

struct SampleRecord {
  perf_event_header header;
  uint64_t address;
};

}  // namespace

bool ProfileSampler::IsPossible() { return UniqueFd(OpenEvent(0, -1)).valid(); }

absl::StatusOr<std::unique_ptr<ProfileSampler>> ProfileSampler::Attach(pid_t pid,
                                                                       const std::vector<int>& cores) {
  std::unique_ptr<ProfileSampler> sampler(new ProfileSampler(pid));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), error)) {
    for (const int core : cores) {
      RETURN_IF_ERROR(sampler->Open(std::atoi(entry.path().filename().c_str()), core));
    }
  }
  return sampler;
}

absl::Status ProfileSampler::Open(pid_t thread, int core) {
  Ring ring;
  ring.fd.Reset(OpenEvent(thread, core));
  if (!ring.fd.valid())
    return absl::UnavailableError(ErrnoStatus("perf_event_open", absl::StrCat(thread)).message());
  ring.memory = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd.get(), 0);
  if (ring.memory == MAP_FAILED) return absl::UnavailableError(ErrnoStatus("map", "perf ring").message());
  rings_.push_back(std::move(ring));
  return absl::OkStatus();
}

ProfileSampler::~ProfileSampler() {
  for (const Ring& ring : rings_) munmap(ring.memory, kRingBytes);
}

void ProfileSampler::Collect() {
  ++num_calls_;
  const CodeMap map = CodeMap::Read(pid_);
  for (Ring& ring : rings_) Read(ring, map);
  std::error_code error;
  int threads = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/task"), error)) {
    threads += entry.exists(error) ? 1 : 0;
  }
  num_threads_ = std::max(num_threads_, threads);
}

void ProfileSampler::Read(Ring& ring, const CodeMap& map) {
  auto* page = static_cast<perf_event_mmap_page*>(ring.memory);
  const char* data = static_cast<const char*>(ring.memory) + kPageBytes;
  const uint64_t head = std::atomic_ref<__u64>(page->data_head).load(std::memory_order_acquire);
  uint64_t tail = page->data_tail;
  while (tail < head) {
    SampleRecord record{};
    char* bytes = reinterpret_cast<char*>(&record);
    for (size_t i = 0; i < sizeof(record); ++i) bytes[i] = data[(tail + i) % kDataBytes];
    if (record.header.size == 0) break;
    if (record.header.type == PERF_RECORD_SAMPLE) Count(record.address, map.OriginOf(record.address));
    tail += record.header.size;
  }
  std::atomic_ref<__u64>(page->data_tail).store(head, std::memory_order_release);
}

void ProfileSampler::Count(uint64_t address, CodeOrigin origin) {
  ++counts_[static_cast<size_t>(origin)];
  if (origin != CodeOrigin::kOwn) return;
  std::array<uint8_t, 16> bytes{};
  iovec local{bytes.data(), bytes.size()};
  iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  switch (VectorBits(bytes)) {
    case 512:
      ++width_counts_[3];
      break;
    case 256:
      ++width_counts_[2];
      break;
    case 128:
      ++width_counts_[1];
      break;
    default:
      ++width_counts_[0];
  }
}

int ProfileSampler::num_samples() const { return std::accumulate(counts_.begin(), counts_.end(), 0); }

void ProfileSampler::Merge(const ProfileSampler& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  for (size_t i = 0; i < width_counts_.size(); ++i) width_counts_[i] += other.width_counts_[i];
  num_threads_ = std::max(num_threads_, other.num_threads_);
  num_calls_ += other.num_calls_;
}

ProfileSampler::SamplesPerCall ProfileSampler::PerCall() const {
  SamplesPerCall per_call{};
  for (size_t i = 0; i < counts_.size(); ++i)
    per_call[i] = counts_[i] / static_cast<double>(std::max(1, num_calls_));
  return per_call;
}

void ProfileSampler::Report(const SamplesPerCall& path_samples_per_call, ProfileNumbers& numbers) const {
  SamplesPerCall counts{};
  for (size_t i = 0; i < counts.size(); ++i) {
    // The empty candidate's own code is the candidate's, too.
    const double path =
        i == static_cast<size_t>(CodeOrigin::kOwn) ? 0 : path_samples_per_call[i] * num_calls_;
    counts[i] = std::max(0.0, counts_[i] - path);
  }
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto share = [&](CodeOrigin origin) {
    return total <= 0 ? 0.0 : counts[static_cast<size_t>(origin)] / total;
  };
  numbers.num_samples = static_cast<int>(total);
  numbers.own_code_share = share(CodeOrigin::kOwn);
  numbers.torch_share = share(CodeOrigin::kTorch);
  numbers.blas_share = share(CodeOrigin::kBlas);
  numbers.libc_share = share(CodeOrigin::kLibc);
  numbers.kernel_share = share(CodeOrigin::kKernel);
  numbers.num_threads = num_threads_;
  const int own = counts_[static_cast<size_t>(CodeOrigin::kOwn)];
  for (size_t width = 1; width < width_counts_.size(); ++width) {
    if (own > 0 && width_counts_[width] >= kWidthShareMin * own) numbers.vector_bits = 64 << width;
  }
}

}  // namespace warpsmith
