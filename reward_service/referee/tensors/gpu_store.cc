#include "reward_service/referee/tensors/gpu_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
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

// What is written last need not replace all that was there.
constexpr int64_t kCacheFillings = 2;
// Of a GPU's memory, half of what the draws of a task may take: what is kept unused makes memory scarce, too.
constexpr int64_t kUnusedShare = 16;
// Allocations of programs that are kept open: of four that are verified at once, twice what a batch of calls has for
// one output each.
constexpr size_t kForeignMax = 256;

absl::Status LiesOnHost() { return absl::UnimplementedError("a draw that lies on the host"); }

// Nothing for what is compared byte by byte.
std::optional<cuda::RealType> RealTypeOf(const TensorSpec& spec) {
  constexpr int kFloat = 2, kBrainFloat = 4;  // DLDataTypeCode
  if (spec.code == kBrainFloat) return cuda::RealType::kBrainHalf;
  if (spec.code != kFloat) return std::nullopt;
  if (spec.bits == 64) return cuda::RealType::kDouble;
  return spec.bits == 32 ? cuda::RealType::kSingle : cuda::RealType::kHalf;
}

}  // namespace

class GpuStore::Memory : public TensorMemory {
 public:
  Memory(GpuStore* store, std::unique_ptr<cuda::GpuMemory> memory, UniqueFd fd)
      : store_(store), memory_(std::move(memory)), fd_(std::move(fd)) {}
  ~Memory() override {
    store_->Do([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // Do() has the lock
      if (fd_.valid()) {
        memory_.reset();
      } else {
        store_->Free(std::move(memory_));
      }
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
  void Write(const OwnTensors& from, int64_t from_offset, int64_t offset, int64_t num_bytes) override {
    if (from.on_gpu() == nullptr) return Write(from.get() + from_offset, offset, num_bytes);
    store_->Do([&] { return memory_->Copy(Of(*from.on_gpu()), from_offset, offset, num_bytes); });
  }
  bool IsSame(const OwnTensors& as, int64_t as_offset, int64_t offset, int64_t num_bytes) override {
    bool same = false;
    if (as.on_gpu() == nullptr) {
      return std::memcmp(Read(offset, num_bytes), as.get() + as_offset, static_cast<size_t>(num_bytes)) == 0;
    }
    store_->Do([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {  // Do() has the lock
      const cuda::Address expected = Of(*as.on_gpu()).address() + static_cast<cuda::Address>(as_offset);
      const cuda::Address actual = memory_->address() + static_cast<cuda::Address>(offset);
      ASSIGN_OR_RETURN(same, store_->kernels_->AreSame(num_bytes, expected, actual));
      return absl::OkStatus();
    });
    return same;
  }
  const char* Read(int64_t offset, int64_t num_bytes) override {
    // Draws are many, and few of them are read: those of a thread share a copy.
    thread_local std::vector<char> kept_copy;
    std::vector<char>& copy = fd_.valid() ? copy_ : kept_copy;
    copy.resize(static_cast<size_t>(num_bytes));
    store_->Do([&] { return memory_->Read(copy.data(), offset, num_bytes); });
    return copy.data();
  }
  int fd() const override { return fd_.get(); }
  // The driver's mappings say who may write; descriptors do not.
  int read_only_fd() const override { return fd_.get(); }

  // All memory that a store of this kind makes.
  static cuda::GpuMemory& Of(TensorMemory& memory) { return *static_cast<Memory&>(memory).memory_; }

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
  size_t device_bytes = 0;
  RETURN_IF_ERROR(
      driver.Check(driver.api().cuDeviceTotalMem_v2(&device_bytes, context->device()), "cuDeviceTotalMem"));
  ASSIGN_OR_RETURN(auto cache_filler, cuda::GpuMemory::Create(context.get(), kCacheFillings * cache_bytes));
  ASSIGN_OR_RETURN(auto probe, cuda::IdleProbe::Create(context.get()));
  ASSIGN_OR_RETURN(auto kernels, cuda::TensorKernels::Create(context.get()));
  ASSIGN_OR_RETURN(auto late_words, cuda::LateWords::Create(context.get()));
  ASSIGN_OR_RETURN(auto pool, cuda::MemoryPool::Open(context.get()));
  std::unique_ptr<GpuStore> store(new GpuStore(static_cast<int64_t>(device_bytes), std::move(context),
                                               std::move(cache_filler), std::move(probe), std::move(kernels),
                                               std::move(late_words), std::move(pool)));
  RETURN_IF_ERROR(store->occupation_.Learn());
  return store;
}

absl::StatusOr<std::unique_ptr<TensorMemory>> GpuStore::Make(int64_t num_bytes) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(context_->Enter());
  absl::StatusOr<std::unique_ptr<cuda::GpuMemory>> made = cuda::GpuMemory::Create(context_.get(), num_bytes);
  if (absl::IsResourceExhausted(made.status()) && pool_->ReturnUnused(0)) {
    made = cuda::GpuMemory::Create(context_.get(), num_bytes);
  }
  if (absl::IsResourceExhausted(made.status())) NoteScarcity();
  ASSIGN_OR_RETURN(auto memory, std::move(made));
  RETURN_IF_ERROR(memory->Fill(0, 0, memory->mapped_bytes()));  // what others left there
  RETURN_IF_ERROR(context_->Synchronise());
  ASSIGN_OR_RETURN(UniqueFd fd, memory->Export());
  return std::make_unique<Memory>(this, std::move(memory), std::move(fd));
}

void GpuStore::Copy(const std::vector<TensorCopy>& copies, TensorMemory* to) {
  static_assert(LatePair::kWordBytes == cuda::LateWords::kBytes);
  const cuda::Address start = Memory::Of(*to).address();
  std::vector<cuda::LateWords::Pair> pairs;
  std::vector<size_t> ends;  // of the pairs of each copy
  // Where a call has more inputs than any of a task is known to have, the last ones are not late, of no call.
  const size_t pairs_max = cuda::LateWords::kPairsMax / std::max<size_t>(1, copies.size());
  for (const TensorCopy& copy : copies) {
    const size_t num_pairs = copy.from->on_gpu() == nullptr ? 0 : std::min(pairs_max, copy.late.size());
    for (size_t i = 0; i < num_pairs; ++i) {
      const cuda::Address from = Memory::Of(*copy.from->on_gpu()).address();
      const cuda::Address there = start + static_cast<cuda::Address>(copy.offset);
      const auto first = static_cast<cuda::Address>(copy.late[i].first);
      const auto second = static_cast<cuda::Address>(copy.late[i].second);
      pairs.push_back({from + first, from + second, there + first, there + second});
    }
    ends.push_back(pairs.size());
  }
  // With one lock: nobody else may find them exchanged.
  Do([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {  // Do() has the lock
    RETURN_IF_ERROR(late_words_->Hold(pairs));
    for (size_t i = 0, first = 0; i < copies.size(); first = ends[i++]) {
      RETURN_IF_ERROR(late_words_->Exchange(first, ends[i] - first));
      const auto& [from, offset, num_bytes, late] = copies[i];
      RETURN_IF_ERROR(from->on_gpu() == nullptr
                          ? Memory::Of(*to).Write(from->get(), offset, num_bytes)
                          : Memory::Of(*to).Copy(Memory::Of(*from->on_gpu()), 0, offset, num_bytes));
      RETURN_IF_ERROR(late_words_->Exchange(first, ends[i] - first));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<cuda::GpuMemory>> GpuStore::Take(int64_t num_bytes) {
  auto memory = cuda::GpuMemory::Allocate(context_.get(), num_bytes);
  if (absl::IsResourceExhausted(memory.status()) && pool_->ReturnUnused(0)) {
    memory = cuda::GpuMemory::Allocate(context_.get(), num_bytes);
  }
  if (absl::IsResourceExhausted(memory.status())) NoteScarcity();
  return memory;
}

bool GpuStore::MakeRoomOnHost(int64_t num_bytes) {
  int64_t room = host_draw_bytes_max_ - host_bytes_ - num_bytes;
  for (const auto& [unused_bytes, memory] : unused_on_host_) room -= unused_bytes;
  while (room < 0 && !unused_on_host_.empty()) {
    const auto largest = std::prev(unused_on_host_.end());
    room += largest->first;
    unused_on_host_.erase(largest);
  }
  return room >= 0;
}

void GpuStore::ReturnUnusedOfHost() {
  if (host_bytes_ == 0) unused_on_host_.clear();
}

absl::StatusOr<std::unique_ptr<cuda::GpuMemory>> GpuStore::TakeOnHost(int64_t num_bytes) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(context_->Enter());
    if (auto unused = unused_on_host_.extract(num_bytes); !unused.empty()) {
      host_bytes_ += num_bytes;
      return std::move(unused.mapped());
    }
    if (!MakeRoomOnHost(num_bytes)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("draws have ", host_bytes_, " bytes of the host's memory, of which they may have ",
                       host_draw_bytes_max_, ", and ", num_bytes, " more are wanted"));
    }
    host_bytes_ += num_bytes;
  }
  absl::StatusOr<cuda::HostPages> pages = cuda::HostPages::Map(num_bytes);  // long, so not with the lock
  absl::MutexLock lock(&mutex_);
  auto memory = pages.ok() ? cuda::GpuMemory::Lock(context_.get(), *std::move(pages)) : pages.status();
  if (memory.ok()) return memory;
  host_bytes_ -= num_bytes;
  ReturnUnusedOfHost();
  return memory;
}

void GpuStore::Free(std::unique_ptr<cuda::GpuMemory> memory) {
  if (memory->is_on_host()) {
    const int64_t num_bytes = memory->num_bytes();
    host_bytes_ -= num_bytes;
    unused_on_host_.emplace(num_bytes, std::move(memory));
    ReturnUnusedOfHost();
    return;
  }
  memory.reset();
  const int64_t unused_max = device_bytes_ / kUnusedShare;
  if (pool_->unused_bytes() <= stuck_bytes_ + unused_max) return;
  (void)pool_->ReturnUnused(unused_max / 2);
  stuck_bytes_ = std::max<int64_t>(0, pool_->unused_bytes() - unused_max / 2);
}

absl::StatusOr<OwnTensors> GpuStore::Keep(TensorMemory& memory, int64_t offset, int64_t num_bytes,
                                          KeptIn where) {
  std::unique_ptr<cuda::GpuMemory> kept;
  if (where == KeptIn::kHost) {
    ASSIGN_OR_RETURN(kept, TakeOnHost(num_bytes));
  }
  absl::MutexLock lock(&mutex_);
  if (kept == nullptr) {
    RETURN_IF_ERROR(context_->Enter());
    ASSIGN_OR_RETURN(kept, Take(num_bytes));
  }
  if (absl::Status status = kept->Copy(Memory::Of(memory), offset, 0, num_bytes); !status.ok()) {
    Free(std::move(kept));
    return status;
  }
  return OwnTensors(std::make_unique<Memory>(this, std::move(kept), UniqueFd()));
}

// What fails here and below is not kept: the program chose what was asked for.
absl::StatusOr<std::unique_ptr<cuda::ForeignMemory>> GpuStore::OpenForeign(std::string_view handle) {
  cuda::IpcHandle opened;
  if (handle.size() != 2 * sizeof(opened.bytes) ||
      !std::all_of(handle.begin(), handle.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); })) {
    return absl::InvalidArgumentError("no handle of memory");
  }
  const std::string bytes = absl::HexStringToBytes({handle.data(), handle.size()});
  std::memcpy(opened.bytes, bytes.data(), sizeof(opened.bytes));
  return cuda::ForeignMemory::Open(context_.get(), opened);
}

absl::StatusOr<const cuda::ForeignMemory*> GpuStore::FindForeign(std::string_view handle) {
  RETURN_IF_ERROR(context_->Enter());
  const auto found = foreign_.find(handle);
  if (found != foreign_.end()) return found->second.get();
  ASSIGN_OR_RETURN(auto memory, OpenForeign(handle));
  if (foreign_.size() == kForeignMax) foreign_.erase(foreign_.begin());  // any of them
  return foreign_.emplace(handle, std::move(memory)).first->second.get();
}

void GpuStore::CloseForeign(const std::set<std::string>& handles) {
  if (handles.empty()) return;
  Do([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // Do() has the lock
    for (const std::string& handle : handles) foreign_.erase(handle);
    return absl::OkStatus();
  });
}

absl::Status GpuStore::ReadForeign(std::string_view handle, int64_t offset, int64_t num_bytes, char* to) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const cuda::ForeignMemory* const memory, FindForeign(handle));
  return memory->Read(to, offset, num_bytes);
}

void GpuStore::FillForeign(unsigned char value, std::string_view handle, int64_t offset, int64_t num_bytes) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<const cuda::ForeignMemory*> memory = FindForeign(handle);
  if (!memory.ok()) return;  // the program's word: what it says of its memory is checked where it counts
  const absl::StatusOr<cuda::Address> start = (*memory)->At(offset, num_bytes);
  if (!start.ok()) return;
  const cuda::Driver& driver = context_->driver();
  failure_.Update(
      driver.Check(driver.api().cuMemsetD8_v2(*start, value, static_cast<size_t>(num_bytes)), "cuMemsetD8"));
}

absl::StatusOr<Comparison> GpuStore::CompareForeign(const ExpectedOutput& expected,
                                                    const ForeignPlace& place) {
  if (expected.tensors.on_gpu() == nullptr) return LiesOnHost();
  const TensorSpec& spec = expected.spec;
  const int64_t element_bytes = std::max(1, spec.bits / 8);
  const std::optional<cuda::Places> places =
      place.strides.empty() ? cuda::Places() : cuda::JoinedPlaces(spec.shape, place.strides);
  if (!places) return absl::UnimplementedError("an output whose elements lie in too many ways");
  int64_t num_bytes = place.strides.empty() ? spec.num_bytes : element_bytes;
  for (size_t d = 0; d < places->extents.size(); ++d)
    num_bytes += (places->extents.at(d) - 1) * places->strides.at(d) * element_bytes;
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const cuda::ForeignMemory* const memory, FindForeign(place.handle));
  ASSIGN_OR_RETURN(const cuda::Address actual, memory->At(place.offset, num_bytes));
  // Numbers are aligned, as what Torch allocates is.
  if (actual % static_cast<cuda::Address>(element_bytes) != 0)
    return absl::InvalidArgumentError("an output that is not aligned");
  return place.strides.empty() ? CompareAt(expected, actual) : CompareApart(expected, *places, actual);
}

absl::StatusOr<Comparison> GpuStore::CompareApart(const ExpectedOutput& expected, const cuda::Places& places,
                                                  cuda::Address actual) {
  ASSIGN_OR_RETURN(std::unique_ptr<cuda::GpuMemory> copy, Take(expected.spec.num_bytes));
  RETURN_IF_ERROR(kernels_->Gather(std::max(1, expected.spec.bits / 8), places, actual, copy->address()));
  absl::StatusOr<Comparison> result = CompareAt(expected, copy->address());
  Free(std::move(copy));
  return result;
}

absl::StatusOr<Comparison> GpuStore::CompareInPlace(const ExpectedOutput& expected, TensorMemory& memory,
                                                    int64_t offset) {
  if (expected.tensors.on_gpu() == nullptr) return LiesOnHost();
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(context_->Enter());
  absl::StatusOr<Comparison> result =
      CompareAt(expected, Memory::Of(memory).address() + static_cast<cuda::Address>(offset));
  failure_.Update(result.status());
  return result;
}

absl::StatusOr<Comparison> GpuStore::CompareAt(const ExpectedOutput& expected, cuda::Address actual) {
  const TensorSpec& spec = expected.spec;
  const cuda::Address address =
      Memory::Of(*expected.tensors.on_gpu()).address() + static_cast<cuda::Address>(spec.offset);
  Comparison result;
  result.num_elements = spec.num_elements;
  const std::optional<cuda::RealType> type = RealTypeOf(spec);
  if (!type) {
    ASSIGN_OR_RETURN(const bool same, kernels_->AreSame(spec.num_bytes, address, actual));
    result.num_wrong = same ? 0 : 1;
    return result;
  }
  const Tolerance& t = expected.tolerance;
  const cuda::Address margins =
      t.has_margins ? address + static_cast<cuda::Address>(spec.margins_offset - spec.offset) : 0;
  ASSIGN_OR_RETURN(const cuda::Differences found,
                   kernels_->CompareReals(*type, spec.num_elements, {t.absolute, t.relative, t.reach},
                                          {.elements = address, .margins = margins}, actual));
  result.max_absolute_error = found.max_absolute_error;
  if (found.num_outliers > 0) result.first_outlier = spec.num_elements - found.num_from_first_outlier;
  if (!IsWrong(t, found.num_outliers, found.outlier_error, found.squares, found.num_squares)) return result;
  result.num_wrong = std::max<int64_t>(1, found.num_outliers);
  result.num_non_finite = found.num_non_finite;
  result.num_unwritten = found.num_all_bits;
  if (found.num_outliers == 0) return result;
  ASSIGN_OR_RETURN(result.first_difference, DescribeFirst(expected, result.first_outlier, actual));
  return result;
}

absl::StatusOr<std::string> GpuStore::DescribeFirst(const ExpectedOutput& expected, int64_t index,
                                                    cuda::Address actual) {
  const TensorSpec& spec = expected.spec;
  const int64_t num_bytes = spec.bits / 8, offset = index * num_bytes;
  uint64_t wanted = 0, got = 0;  // room for one of any type
  RETURN_IF_ERROR(Memory::Of(*expected.tensors.on_gpu()).Read(&wanted, spec.offset + offset, num_bytes));
  const cuda::Driver& driver = context_->driver();
  RETURN_IF_ERROR(driver.Check(driver.api().cuMemcpyDtoH_v2(&got, actual + static_cast<cuda::Address>(offset),
                                                            static_cast<size_t>(num_bytes)),
                               "cuMemcpyDtoH"));
  return DescribeDifference(spec, index, &wanted, &got);
}

}  // namespace warpsmith
