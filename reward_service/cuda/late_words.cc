#include "reward_service/cuda/late_words.h"

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith::cuda {
namespace {

constexpr unsigned kThreads = 128;

// PTX, as of tensor_kernels.cc. A thread has a pair.
constexpr char kText[] = R"(
.version 7.0
.target sm_60
.address_size 64

.visible .entry place_words(.param .u64 pairs, .param .u32 count, .param .u32 in_copy) {
  .reg .pred %end, %in_copy;
  .reg .b32 %block, %size, %i, %count, %flag;
  .reg .b64 %pair, %first, %second, %to_first, %to_second, %a, %b;
  ld.param.u64 %pair, [pairs];
  ld.param.u32 %count, [count];
  ld.param.u32 %flag, [in_copy];
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %i, %tid.x;
  mad.lo.u32 %i, %block, %size, %i;
  setp.ge.u32 %end, %i, %count;
  @%end ret;
  mad.wide.u32 %pair, %i, 32, %pair;
  ld.global.u64 %first, [%pair];
  ld.global.u64 %second, [%pair+8];
  ld.global.u64 %to_first, [%pair+16];
  ld.global.u64 %to_second, [%pair+24];
  ld.global.u64 %a, [%first];
  ld.global.u64 %b, [%second];
  setp.ne.u32 %in_copy, %flag, 0;
  selp.u64 %to_first, %to_first, %second, %in_copy;
  selp.u64 %to_second, %to_second, %first, %in_copy;
  st.global.u64 [%to_first], %a;
  st.global.u64 [%to_second], %b;
  ret;
}
)";

}  // namespace

absl::StatusOr<std::unique_ptr<LateWords>> LateWords::Create(const GpuContext* context) {
  const Driver& driver = context->driver();
  std::unique_ptr<LateWords> words(new LateWords(context));
  Module module = nullptr;
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleLoadData(&module, kText), "cuModuleLoadData"));
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleGetFunction(&words->place_, module, "place_words"),
                               "cuModuleGetFunction"));
  ASSIGN_OR_RETURN(words->list_, GpuMemory::Allocate(context, kPairsMax * sizeof(Pair)));
  return words;
}

absl::Status LateWords::Hold(const std::vector<Pair>& pairs) {
  static_assert(sizeof(Pair) == 32, "as the kernel lays it out");
  WS_CHECK(pairs.size() <= kPairsMax) << pairs.size();
  num_pairs_ = 0;
  if (pairs.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(list_->Write(pairs.data(), 0, static_cast<int64_t>(pairs.size() * sizeof(Pair))));
  num_pairs_ = pairs.size();
  return absl::OkStatus();
}

absl::Status LateWords::Exchange(size_t first, size_t count) {
  return count == 0 ? absl::OkStatus() : Place(first, count, /*in_copy=*/false);
}

absl::Status LateWords::Give() {
  if (empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Place(0, num_pairs_, /*in_copy=*/true));
  num_pairs_ = 0;
  return absl::OkStatus();
}

absl::Status LateWords::Place(size_t first, size_t count, bool in_copy) {
  Address pairs = list_->address() + first * sizeof(Pair);
  auto num_pairs = static_cast<uint32_t>(count);
  uint32_t flag = in_copy ? 1 : 0;
  void* arguments[] = {&pairs, &num_pairs, &flag};
  const unsigned num_blocks = (num_pairs + kThreads - 1) / kThreads;
  const Driver& driver = context_->driver();
  return driver.Check(
      driver.api().cuLaunchKernel(place_, num_blocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr),
      "cuLaunchKernel");
}

}  // namespace warpsmith::cuda
