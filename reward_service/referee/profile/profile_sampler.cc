#include "reward_service/referee/profile/profile_sampler.h"

#include <limits.h>
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
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// The kernel samples no more often by a clock (perf_swevent_start_hrtimer).
constexpr uint64_t kPeriodNsMin = 10'000;
constexpr size_t kPageBytes = 4096;
constexpr size_t kDataBytes = 64 * kPageBytes;
constexpr size_t kRingBytes = kPageBytes + kDataBytes;
// Of the stack below a sample: enough for the frames of malloc() and the return into whoever called it.
constexpr size_t kStackBytes = 1024;
// Of a sample's record: its head, address, registers, and the stack with its two sizes; of a mapping's: its
// head, process and thread, address, length, offset and path.
constexpr size_t kSampleBytes = sizeof(perf_event_header) + 6 * sizeof(uint64_t) + kStackBytes;
constexpr size_t kMappingBytes = sizeof(perf_event_header) + 4 * sizeof(uint64_t) + PATH_MAX;
constexpr size_t kRecordBytesMax = std::max(kSampleBytes, kMappingBytes);
// What a call is expected to have fills half of the ring.
constexpr size_t kCallSamplesMax = kDataBytes / kSampleBytes / 2;
// A width counts when at least this share of the own work has it, in own code or vector math: the C library's other
// functions have vectors for all who call them.
constexpr double kWidthShareMin = 0.1;

#if defined(__x86_64__)
// Bits of PERF_REG_X86_SP and PERF_REG_X86_IP; registers come in ascending order.
constexpr uint64_t kRegisters = uint64_t{1} << 7 | uint64_t{1} << 8;
#endif

perf_event_attr Attributes(uint64_t period_ns) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof(attributes);
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns;
  attributes.sample_type = PERF_SAMPLE_IP;
#if defined(__x86_64__)
  attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attributes.sample_regs_user = kRegisters;
  attributes.sample_stack_user = kStackBytes;
#endif
  attributes.inherit = 1;
  attributes.mmap = 1;  // records of executable memory
  attributes.watermark = 1;
  attributes.wakeup_watermark = kDataBytes;
  return attributes;
}

int OpenEvent(pid_t thread, int core, uint64_t period_ns) {
  perf_event_attr attributes = Attributes(period_ns);
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, core, -1, PERF_FLAG_FD_CLOEXEC));
}

// Of a record of executable memory, perf_event_open(2): process and thread, address, length, offset; the
// path.
std::string MappedPath(const std::vector<uint64_t>& words) {
  constexpr size_t kPathWord = 4;
  if (words.size() <= kPathWord) return "";
  const char* path = reinterpret_cast<const char*>(words.data() + kPathWord);
  return std::string(path, strnlen(path, (words.size() - kPathWord) * sizeof(uint64_t)));
}

// A record of the attributes above, perf_event_open(2): address; 0, or 2 (64 bits) and the registers; bytes
// of stack, these bytes, and how many of them are of the stack.
class Sample {
 public:
  explicit Sample(const std::vector<uint64_t>& words) : words_(words) {}

  uint64_t address() const { return words_[0]; }

  // Whose work it is. User code that the kernel works for is at the saved instruction pointer; a function of
  // the C library works for the first return address of somebody else's on the stack.
  CodeOrigin Origin(const CodeMap& map) const {
    const CodeOrigin here = map.OriginOf(address());
    const bool is_library = here == CodeOrigin::kLibc || here == CodeOrigin::kVectorMath;
    if ((!is_library && here != CodeOrigin::kKernel) || words_.size() < 5 || words_[1] == 0) return here;
    const CodeOrigin user = map.OriginOf(words_[3]);
    if (IsSomebody(user)) return user;
    // Memory that the C library asks for or gives back: both sides need it, whoever calls.
    if (here == CodeOrigin::kKernel) return here;
    const size_t num_words = std::min(words_[4] / sizeof(uint64_t), words_.size() - 5);
    for (size_t i = 0; i < num_words; ++i) {
      if (const CodeOrigin caller = map.OriginOf(words_[5 + i]); IsSomebody(caller)) return caller;
    }
    return here;
  }

 private:
  static bool IsSomebody(CodeOrigin origin) {
    return origin == CodeOrigin::kOwn || origin == CodeOrigin::kLibrary;
  }

  const std::vector<uint64_t>& words_;
};

}  // namespace

bool ProfileSampler::IsPossible() { return UniqueFd(OpenEvent(0, -1, kPeriodNsMin)).valid(); }

ProfileSampler::ProfileSampler(double period_us)
    : usual_period_ns_(std::max(kPeriodNsMin, static_cast<uint64_t>(period_us * 1e3))),
      period_ns_(usual_period_ns_) {}

absl::Status ProfileSampler::Attach(pid_t pid, const std::vector<int>& cores, double expected_us) {
  Detach();
  pid_ = pid;
  period_ns_ = std::max(usual_period_ns_, static_cast<uint64_t>(expected_us * 1e3 / kCallSamplesMax));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), error)) {
    RETURN_IF_ERROR(AttachThread(std::atoi(entry.path().filename().c_str()), cores));
  }
  return absl::OkStatus();
}

absl::Status ProfileSampler::AttachThread(pid_t thread, const std::vector<int>& cores) {
  for (const int core : cores) RETURN_IF_ERROR(Open(thread, core));
  return absl::OkStatus();
}

absl::Status ProfileSampler::Open(pid_t thread, int core) {
  Ring ring;
  ring.fd.Reset(OpenEvent(thread, core, period_ns_));
  if (!ring.fd.valid())
    return absl::UnavailableError(ErrnoStatus("perf_event_open", absl::StrCat(thread)).message());
  ring.memory = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd.get(), 0);
  if (ring.memory == MAP_FAILED) return absl::UnavailableError(ErrnoStatus("map", "perf ring").message());
  rings_.push_back(std::move(ring));
  return absl::OkStatus();
}

void ProfileSampler::Detach() {
  for (const Ring& ring : rings_) munmap(ring.memory, kRingBytes);
  rings_.clear();
}

ProfileSampler::~ProfileSampler() { Detach(); }

void ProfileSampler::Collect() {
  Tally tally;
  const CodeMap map = CodeMap::Read(pid_);
  bool all_seen = true;
  for (Ring& ring : rings_) all_seen &= Read(ring, map, tally);
  Detach();
  const auto counted = [&](CodeOrigin origin) -> int& { return tally.counts[static_cast<size_t>(origin)]; };
  if (!all_seen) counted(CodeOrigin::kLibrary) += std::exchange(counted(CodeOrigin::kOwn), 0);
  std::error_code error;
  int threads = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/task"), error)) {
    threads += entry.exists(error) ? 1 : 0;
  }
  num_threads_ = std::max(num_threads_, threads);
  for (size_t i = 0; i < sum_.counts.size(); ++i) sum_.counts[i] += tally.counts[i];
  for (size_t i = 0; i < sum_.width_counts.size(); ++i) sum_.width_counts[i] += tally.width_counts[i];
  sum_.num_libc += tally.num_libc;
}

bool ProfileSampler::Read(Ring& ring, const CodeMap& map, Tally& tally) const {
  bool all_seen = true;
  auto* page = static_cast<perf_event_mmap_page*>(ring.memory);
  const char* data = static_cast<const char*>(ring.memory) + kPageBytes;
  const uint64_t head = std::atomic_ref<__u64>(page->data_head).load(std::memory_order_acquire);
  const uint64_t start = page->data_tail;
  uint64_t tail = start;
  const auto copy = [&](uint64_t from, size_t num_bytes, void* to) {
    const size_t before_end = std::min(num_bytes, kDataBytes - from % kDataBytes);
    std::memcpy(to, data + from % kDataBytes, before_end);
    std::memcpy(static_cast<char*>(to) + before_end, data, num_bytes - before_end);
  };
  std::vector<uint64_t> words;
  while (tail < head) {
    perf_event_header header{};
    copy(tail, sizeof(header), &header);
    if (header.size < sizeof(header)) break;
    words.resize((header.size - sizeof(header)) / sizeof(uint64_t));
    copy(tail + sizeof(header), words.size() * sizeof(uint64_t), words.data());
    if (header.type == PERF_RECORD_SAMPLE && !words.empty()) {
      const Sample sample(words);
      const CodeOrigin place = map.OriginOf(sample.address());
      const CodeOrigin origin = sample.Origin(map);
      const bool is_vector_math = place == CodeOrigin::kVectorMath;
      tally.num_libc += is_vector_math || place == CodeOrigin::kLibc;
      ++tally.counts[static_cast<size_t>(origin)];
      if (origin == CodeOrigin::kOwn && (is_vector_math || place == CodeOrigin::kOwn)) {
        CountWidth(sample.address(), tally);
      }
    }
    if (header.type == PERF_RECORD_LOST) all_seen = false;
    // What lies there now need not be what has run there.
    if (header.type == PERF_RECORD_MMAP) all_seen &= OriginOfPath(MappedPath(words)) != CodeOrigin::kOwn;
    tail += header.size;
  }
  std::atomic_ref<__u64>(page->data_tail).store(head, std::memory_order_release);
  // A ring that is full, or nearly, has lost the call's end without a record of it.
  return all_seen && head - start < kDataBytes - kRecordBytesMax;
}

void ProfileSampler::CountWidth(uint64_t address, Tally& tally) const {
  std::array<uint8_t, 16> bytes{};
  iovec local{bytes.data(), bytes.size()};
  iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  switch (VectorBits(bytes)) {
    case 512:
      ++tally.width_counts[3];
      break;
    case 256:
      ++tally.width_counts[2];
      break;
    case 128:
      ++tally.width_counts[1];
      break;
    default:
      ++tally.width_counts[0];
  }
}

int ProfileSampler::NumSamples(const Tally& tally) {
  return std::accumulate(tally.counts.begin(), tally.counts.end(), 0);
}

void ProfileSampler::Report(v1::Profile* profile) const {
  const int total = num_samples();
  const auto share = [total](int count) { return count / static_cast<double>(std::max(1, total)); };
  const auto of = [this](CodeOrigin origin) { return sum_.counts[static_cast<size_t>(origin)]; };
  const int own = of(CodeOrigin::kOwn);
  profile->set_num_samples(total);
  profile->set_own_code_share(share(own));
  profile->set_libc_share(share(sum_.num_libc));
  profile->set_kernel_share(share(of(CodeOrigin::kKernel)));
  profile->set_num_threads(num_threads_);
  for (size_t width = 1; width < sum_.width_counts.size(); ++width) {
    if (own > 0 && sum_.width_counts[width] >= kWidthShareMin * own) profile->set_vector_bits(64 << width);
  }
}

}  // namespace warpsmith
