#include "reward_service/cuda/tensor_kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "core/base/status_macros.h"

namespace warpsmith::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kBlocksMax = 4096;
constexpr int64_t kWordBytes = 8;

// PTX, which the driver translates for its GPU. Each thread looks at every so many-th element; what all find is
// added up in two words of memory. A double that is not negative is ordered as its bits are.
constexpr char kHead[] = R"(
.version 7.0
.target sm_60
.address_size 64
)";

// $0: a name; $1: bytes of an element; $2, $3: instructions that load from [%place] into %e or %c; $4: those that make
// the predicate %right, and %error, of them.
constexpr char kKernel[] = R"(
.visible .entry $0(.param .u64 expected, .param .u64 actual, .param .u64 count, .param .f64 absolute,
                   .param .f64 relative, .param .f64 rounding, .param .f64 centre, .param .u64 result) {
  .reg .pred %end, %right, %some;
  .reg .b16 %half;
  .reg .b32 %a, %b, %word;
  .reg .f32 %single;
  .reg .b64 %expected, %actual, %count, %result, %i, %step, %place, %wrong, %bits, %x, %y;
  .reg .f64 %absolute, %relative, %rounding, %centre, %e, %c, %error, %allowed, %size, %largest, %infinity;
  ld.param.u64 %expected, [expected];
  ld.param.u64 %actual, [actual];
  ld.param.u64 %count, [count];
  ld.param.f64 %absolute, [absolute];
  ld.param.f64 %relative, [relative];
  ld.param.f64 %rounding, [rounding];
  ld.param.f64 %centre, [centre];
  ld.param.u64 %result, [result];
  mov.u32 %a, %ctaid.x;
  mov.u32 %b, %ntid.x;
  mul.wide.u32 %i, %a, %b;
  mov.u32 %a, %tid.x;
  cvt.u64.u32 %step, %a;
  add.u64 %i, %i, %step;
  mov.u32 %a, %nctaid.x;
  mul.wide.u32 %step, %a, %b;
  mov.u64 %wrong, 0;
  mov.f64 %error, 0d0000000000000000;
  mov.f64 %largest, 0d0000000000000000;
  mov.f64 %infinity, 0d7FF0000000000000;
next:
  setp.ge.u64 %end, %i, %count;
  @%end bra done;
  mad.lo.u64 %place, %i, $1, %expected;
  $2
  mad.lo.u64 %place, %i, $1, %actual;
  $3
  $4
  @!%right add.u64 %wrong, %wrong, 1;
  setp.lt.f64 %some, %error, %infinity;
  @%some max.f64 %largest, %largest, %error;
  add.u64 %i, %i, %step;
  bra next;
done:
  setp.ne.u64 %some, %wrong, 0;
  @%some red.global.add.u64 [%result], %wrong;
  // Most threads find that another one has seen a larger error.
  mov.b64 %bits, %largest;
  ld.volatile.global.u64 %x, [%result+8];
  setp.gt.u64 %some, %bits, %x;
  @%some red.global.max.u64 [%result+8], %bits;
  ret;
}
)";

constexpr char kCompareReals[] = R"(sub.f64 %error, %c, %e;
  abs.f64 %error, %error;
  sub.f64 %size, %e, %centre;
  abs.f64 %size, %size;
  fma.rn.f64 %allowed, %relative, %size, %absolute;
  abs.f64 %size, %e;
  fma.rn.f64 %allowed, %rounding, %size, %allowed;
  setp.le.f64 %right, %error, %allowed;)";

// Without the '%', which a register of `to` gets before it.
std::string LoadReal(RealType type, const char* to) {
  switch (type) {
    case RealType::kHalf:
      return absl::StrCat("ld.global.b16 %half, [%place]; cvt.f32.f16 %single, %half; cvt.f64.f32 %", to,
                          ", %single;");
    case RealType::kBrainHalf:
      return absl::StrCat(
          "ld.global.u16 %half, [%place]; cvt.u32.u16 %word, %half; shl.b32 %word, %word, 16; "
          "mov.b32 %single, %word; cvt.f64.f32 %",
          to, ", %single;");
    case RealType::kSingle:
      return absl::StrCat("ld.global.f32 %single, [%place]; cvt.f64.f32 %", to, ", %single;");
    case RealType::kDouble:
      break;
  }
  return absl::StrCat("ld.global.f64 %", to, ", [%place];");
}

int64_t BytesOf(RealType type) { return type == RealType::kDouble ? 8 : type == RealType::kSingle ? 4 : 2; }

const std::map<RealType, const char*>& RealKernels() {
  static const auto* const kernels = new std::map<RealType, const char*>{
      {RealType::kHalf, "compare_half"},
      {RealType::kBrainHalf, "compare_brain_half"},
      {RealType::kSingle, "compare_single"},
      {RealType::kDouble, "compare_double"},
  };
  return *kernels;
}

std::string Text() {
  std::string text = kHead;
  for (const auto& [type, name] : RealKernels()) {
    absl::SubstituteAndAppend(&text, kKernel, name, BytesOf(type), LoadReal(type, "e"), LoadReal(type, "c"),
                              kCompareReals);
  }
  constexpr char kSame[] = "setp.eq.u64 %right, %x, %y;";
  absl::SubstituteAndAppend(&text, kKernel, "compare_words", kWordBytes, "ld.global.u64 %x, [%place];",
                            "ld.global.u64 %y, [%place];", kSame);
  absl::SubstituteAndAppend(&text, kKernel, "compare_bytes", 1, "ld.global.u8 %x, [%place];",
                            "ld.global.u8 %y, [%place];", kSame);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorKernels>> TensorKernels::Create(const GpuContext* context) {
  const Driver& driver = context->driver();
  std::unique_ptr<TensorKernels> kernels(new TensorKernels(context));
  Module module = nullptr;
  const std::string text = Text();
  RETURN_IF_ERROR(driver.Check(driver.api().cuModuleLoadData(&module, text.c_str()), "cuModuleLoadData"));
  const auto find = [&](const char* name, Function* function) {
    return driver.Check(driver.api().cuModuleGetFunction(function, module, name), "cuModuleGetFunction");
  };
  for (const auto& [type, name] : RealKernels()) RETURN_IF_ERROR(find(name, &kernels->reals_[type]));
  RETURN_IF_ERROR(find("compare_words", &kernels->words_));
  RETURN_IF_ERROR(find("compare_bytes", &kernels->bytes_));
  ASSIGN_OR_RETURN(kernels->result_, GpuMemory::Allocate(context, sizeof(Differences)));
  return kernels;
}

absl::StatusOr<Differences> TensorKernels::CompareReals(RealType type, int64_t num_elements,
                                                        const Bounds& bounds, Address expected,
                                                        Address actual) {
  return Launch(reals_.at(type), num_elements, bounds, expected, actual);
}

absl::StatusOr<bool> TensorKernels::AreSame(int64_t num_bytes, Address expected, Address actual) {
  const bool aligned = (expected | actual) % kWordBytes == 0;
  const int64_t num_words = aligned ? num_bytes / kWordBytes : 0;
  ASSIGN_OR_RETURN(const Differences words, Launch(words_, num_words, {}, expected, actual));
  const auto done = static_cast<Address>(num_words * kWordBytes);
  ASSIGN_OR_RETURN(const Differences bytes,
                   Launch(bytes_, num_bytes - num_words * kWordBytes, {}, expected + done, actual + done));
  return words.num_wrong + bytes.num_wrong == 0;
}

absl::StatusOr<Differences> TensorKernels::Launch(Function kernel, int64_t num_elements, const Bounds& bounds,
                                                  Address expected, Address actual) {
  Differences found;
  if (num_elements == 0) return found;
  const Driver& driver = context_->driver();
  RETURN_IF_ERROR(result_->Fill(0, 0, result_->num_bytes()));
  Bounds values = bounds;
  Address result = result_->address();
  void* arguments[] = {&expected,        &actual,          &num_elements,  &values.absolute,
                       &values.relative, &values.rounding, &values.centre, &result};
  const auto num_blocks =
      static_cast<unsigned>(std::min(kBlocksMax, (num_elements + kThreads - 1) / kThreads));
  RETURN_IF_ERROR(driver.Check(
      driver.api().cuLaunchKernel(kernel, num_blocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr),
      "cuLaunchKernel"));
  static_assert(sizeof(Differences) == 16, "as the kernels lay it out");
  RETURN_IF_ERROR(result_->Read(&found, 0, sizeof(found)));
  return found;
}

}  // namespace warpsmith::cuda
