#include "reward_service/cuda/late_words.h"

#include <utility>

#include "core/base/status_macros.h"

namespace warpsmith::cuda {
namespace {

constexpr unsigned kThreads = 128;
// There from the start: of sixteen calls with 64 inputs each. A program may have all memory when more are wanted.
constexpr int64_t kWordsAtFirst = 65536;

// PTX, as of tensor_kernels.cc. A thread has a word; two that have the same one each invert it.
constexpr char kText[] = R"(
.version 7.0
.target sm_60
.address_size 64

.visible .entry invert_words(.param .u64 words, .param .u32 count) {
  .reg .pred %end;
  .reg .b32 %block, %size, %i, %count;
  .reg .b64 %words, %place, %from;
  ld.param.u64 %words, [words];
  ld.param.u32 %count, [count];
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %i, %tid.x;
  mad.lo.u32 %i, %block, %size, %i;
  setp.ge.u32 %end, %i, %count;
  @%end ret;
  mul.wide.u32 %place, %i, 16;
  add.u64 %place, %place, %words;
  ld.global.u64 %from, [%place];
  red.global.xor.b32 [%from], 0xFFFFFFFF;
  ret;
}

.visible .entry give_words(.param .u64 words, .param .u32 count) {
  .reg .pred %end;
  .reg .b32 %block, %size, %i, %count, %word;
  .reg .b64 %words, %place, %from, %to;
  ld.param.u64 %words, [words];
  ld.param.u32 %count, [count];
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %i, %tid.x;
  mad.lo.u32 %i, %block, %size, %i;
  setp.ge.u32 %end, %i, %count;
  @%end ret;
  mul.wide.u32 %place, %i, 16;
  add.u64 %place, %place, %words;
  ld.global.u64 %from, [%place];
  ld.global.u64 %to, [%place+8];
  ld.global.u32 %word, [%from];
  st.global.u32 [%to], %word;
  ret;
}
)";

}  // namespace

absl::StatusOr<std::unique_ptr<LateWords>> LateWords::Create(const GpuContext* context) {
  const Driver& driver = context->driver();
  std::unique_ptr<LateWords> words(new LateWords(context));
  Module module = nullptr;
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleLoadData(&module, kText), "cuModuleLoadData"));
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleGetFunction(&words->invert_, module, "invert_words"),
                               "cuModuleGetFunction"));
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleGetFunction(&words->give_, module, "give_words"),
                               "cuModuleGetFunction"));
  ASSIGN_OR_RETURN(words->list_, GpuMemory::Allocate(context, kWordsAtFirst * sizeof(Word)));
  return words;
}

absl::Status LateWords::Hold(const std::vector<Word>& words) {
  static_assert(sizeof(Word) == 16, "as the kernels lay it out");
  const auto num_bytes = static_cast<int64_t>(words.size() * sizeof(Word));
  num_words_ = 0;
  if (words.empty()) return absl::OkStatus();
  if (list_->num_bytes() < num_bytes) {
    ASSIGN_OR_RETURN(auto longer, GpuMemory::Allocate(context_, num_bytes));
    list_ = std::move(longer);
  }
  RETURN_IF_ERROR(list_->Write(words.data(), 0, num_bytes));
  num_words_ = words.size();
  return absl::OkStatus();
}

absl::Status LateWords::Invert(size_t first, size_t count) {
  if (count == 0) return absl::OkStatus();
  return Launch(invert_, list_->address() + first * sizeof(Word), count);
}

absl::Status LateWords::Give() {
  if (empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Launch(give_, list_->address(), num_words_));
  num_words_ = 0;
  return absl::OkStatus();
}

absl::Status LateWords::Launch(Function kernel, Address words, size_t count) {
  auto num_words = static_cast<uint32_t>(count);
  void* arguments[] = {&words, &num_words};
  const unsigned num_blocks = (num_words + kThreads - 1) / kThreads;
  const Driver& driver = context_->driver();
  return driver.Check(
      driver.api().cuLaunchKernel(kernel, num_blocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr),
      "cuLaunchKernel");
}

}  // namespace warpsmith::cuda
