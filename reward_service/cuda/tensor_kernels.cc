#include "reward_service/cuda/tensor_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "core/base/status_macros.h"

namespace warpsmith::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kBlocksMax = 1024;  // each of their threads adds what it found to one place
constexpr int64_t kWordBytes = 8;

// PTX, which the driver translates for its GPU. Each thread looks at every so many-th element; what all find is
// added up in a Differences in memory. A double that is not negative is ordered as its bits are.
constexpr char kHead[] = R"(
.version 7.0
.target sm_60
.address_size 64
)";

// $0: a name; $1: bytes of an element; $2, $3: instructions that load from [%place] into %e or %c; $4: those that make
// the predicate %right, and %error, of them; $5: those that make the predicate %some of whether all bits at [%place],
// of the actual element, are set.
constexpr char kKernel[] = R"(
.visible .entry $0(.param .u64 expected, .param .u64 margins, .param .u64 actual, .param .u64 count,
                   .param .f64 absolute, .param .f64 relative, .param .f64 reach, .param .u64 result) {
  .reg .pred %end, %right, %some;
  .reg .b16 %half;
  .reg .b32 %a, %b, %word;
  .reg .f32 %single;
  .reg .b64 %expected, %actual, %count, %result, %i, %step, %place, %wrong, %bits, %x, %y;
  .reg .b64 %endless, %unwritten, %before_end, %margins, %num_squares;
  .reg .f64 %absolute, %relative, %reach, %e, %c, %error, %margin, %size, %largest, %infinity;
  .reg .f64 %outlier, %squares;
  ld.param.u64 %expected, [expected];
  ld.param.u64 %margins, [margins];
  ld.param.u64 %actual, [actual];
  ld.param.u64 %count, [count];
  ld.param.f64 %absolute, [absolute];
  ld.param.f64 %relative, [relative];
  ld.param.f64 %reach, [reach];
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
  mov.u64 %endless, 0;
  mov.u64 %unwritten, 0;
  mov.u64 %before_end, 0;
  mov.u64 %num_squares, 0;
  mov.f64 %squares, 0d0000000000000000;
  mov.f64 %outlier, 0d0000000000000000;
  mov.f64 %c, 0d0000000000000000;
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
  @%right bra good;
  add.u64 %wrong, %wrong, 1;
  sub.u64 %x, %count, %i;
  max.u64 %before_end, %before_end, %x;
  setp.le.f64 %some, %error, %infinity;
  selp.f64 %size, %error, %infinity, %some;
  max.f64 %outlier, %outlier, %size;
  $5
  @%some add.u64 %unwritten, %unwritten, 1;
  @%some bra good;
  testp.finite.f64 %some, %c;
  @!%some add.u64 %endless, %endless, 1;
good:
  setp.lt.f64 %some, %error, %infinity;
  @%some max.f64 %largest, %largest, %error;
  add.u64 %i, %i, %step;
  bra next;
done:
  setp.ne.u64 %some, %num_squares, 0;
  @%some red.global.add.f64 [%result+48], %squares;
  @%some red.global.add.u64 [%result+56], %num_squares;
  setp.ne.u64 %some, %wrong, 0;
  @!%some bra error;
  red.global.add.u64 [%result], %wrong;
  red.global.add.u64 [%result+16], %endless;
  red.global.add.u64 [%result+24], %unwritten;
  red.global.max.u64 [%result+32], %before_end;
  mov.b64 %bits, %outlier;
  red.global.max.u64 [%result+40], %bits;
error:
  // Most threads find that another one has seen a larger error.
  mov.b64 %bits, %largest;
  ld.volatile.global.u64 %x, [%result+8];
  setp.gt.u64 %some, %bits, %x;
  @%some red.global.max.u64 [%result+8], %bits;
  ret;
}
)";

// A word without margins has the sign of one that is left out of the mean. 2^-18 is kResidual of comparison.h.
constexpr char kCompareReals[] = R"(abs.f64 %size, %e;
  fma.rn.f64 %margin, %relative, %size, %absolute;
  mov.u32 %word, 0x80000000;
  setp.eq.u64 %some, %margins, 0;
  @%some bra bounded;
  mad.lo.u64 %x, %i, 4, %margins;
  ld.global.u32 %word, [%x];
  and.b32 %a, %word, 0x7FFF0000;
  mov.b32 %single, %a;
  cvt.f64.f32 %margin, %single;
  shl.b32 %a, %word, 16;
  shr.s32 %a, %a, 16;
  cvt.rn.f64.s32 %size, %a;
  mul.f64 %size, %size, 0d3ED0000000000000;
  fma.rn.f64 %e, %size, %margin, %e;
bounded:
  sub.f64 %error, %c, %e;
  abs.f64 %error, %error;
  setp.eq.f64 %some, %c, %e;
  @%some mov.f64 %error, 0d0000000000000000;
  mul.f64 %size, %reach, %margin;
  setp.le.f64 %right, %error, %size;
  setp.lt.s32 %some, %word, 0;
  @%some bra counted;
  div.rn.f64 %size, %error, %margin;
  min.f64 %size, %size, 0d3FF0000000000000;
  fma.rn.f64 %squares, %size, %size, %squares;
  add.u64 %num_squares, %num_squares, 1;
counted:)";

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

// Of the element's own bits, which conversion loses.
std::string TestAllBits(RealType type) {
  switch (type) {
    case RealType::kHalf:
    case RealType::kBrainHalf:
      return "ld.global.u16 %half, [%place]; cvt.u32.u16 %word, %half; setp.eq.u32 %some, %word, 0xFFFF;";
    case RealType::kSingle:
      return "ld.global.u32 %word, [%place]; setp.eq.u32 %some, %word, 0xFFFFFFFF;";
    case RealType::kDouble:
      break;
  }
  return "ld.global.u64 %x, [%place]; setp.eq.u64 %some, %x, 0xFFFFFFFFFFFFFFFF;";
}

// $0: bytes of an element; $1: their type; $2: a register of it. Element i of the target is the i-th in row-major
// order, from its place. There are fewer than 2^32: divisions of 64 bits would take longer than the memory.
constexpr char kGather[] = R"(
.visible .entry gather_$0(.param .u64 from, .param .u64 to, .param .u64 count, .param .u64 extent1,
                  .param .u64 extent2, .param .u64 extent3, .param .u64 stride0, .param .u64 stride1,
                  .param .u64 stride2, .param .u64 stride3) {
  .reg .pred %end;
  .reg .b16 %small;
  .reg .b32 %a, %b, %middle, %rest, %next, %index, %extent;
  .reg .b64 %from, %to, %count, %i, %step, %offset, %stride, %place, %large;
  ld.param.u64 %from, [from];
  ld.param.u64 %to, [to];
  ld.param.u64 %count, [count];
  mov.u32 %a, %ctaid.x;
  mov.u32 %b, %ntid.x;
  mul.wide.u32 %i, %a, %b;
  mov.u32 %a, %tid.x;
  cvt.u64.u32 %step, %a;
  add.u64 %i, %i, %step;
  mov.u32 %a, %nctaid.x;
  mul.wide.u32 %step, %a, %b;
next:
  setp.ge.u64 %end, %i, %count;
  @%end bra done;
  cvt.u32.u64 %rest, %i;
  ld.param.u64 %large, [extent3];
  cvt.u32.u64 %extent, %large;
  ld.param.u64 %stride, [stride3];
  div.u32 %next, %rest, %extent;
  mul.lo.u32 %index, %next, %extent;
  sub.u32 %index, %rest, %index;
  cvt.u64.u32 %offset, %index;
  mul.lo.u64 %offset, %offset, %stride;
  ld.param.u64 %large, [extent2];
  cvt.u32.u64 %extent, %large;
  ld.param.u64 %stride, [stride2];
  div.u32 %rest, %next, %extent;
  mul.lo.u32 %index, %rest, %extent;
  sub.u32 %index, %next, %index;
  cvt.u64.u32 %large, %index;
  mad.lo.u64 %offset, %large, %stride, %offset;
  ld.param.u64 %large, [extent1];
  cvt.u32.u64 %extent, %large;
  ld.param.u64 %stride, [stride1];
  div.u32 %next, %rest, %extent;
  mul.lo.u32 %index, %next, %extent;
  sub.u32 %index, %rest, %index;
  cvt.u64.u32 %large, %index;
  mad.lo.u64 %offset, %large, %stride, %offset;
  ld.param.u64 %stride, [stride0];
  cvt.u64.u32 %large, %next;
  mad.lo.u64 %offset, %large, %stride, %offset;
  mad.lo.u64 %place, %offset, $0, %from;
  ld.global.$1 %$2, [%place];
  mad.lo.u64 %place, %i, $0, %to;
  st.global.$1 [%place], %$2;
  add.u64 %i, %i, %step;
  bra next;
done:
  ret;
}
)";

constexpr struct {
  int64_t num_bytes;
  const char* name;
  const char* type;
  const char* held;
} kGathers[] = {{1, "gather_1", "u8", "small"},
                {2, "gather_2", "u16", "small"},
                {4, "gather_4", "u32", "middle"},
                {8, "gather_8", "u64", "large"}};

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
                              kCompareReals, TestAllBits(type));
  }
  constexpr char kSame[] = "setp.eq.u64 %right, %x, %y;", kNever[] = "setp.ne.u64 %some, %x, %x;";
  absl::SubstituteAndAppend(&text, kKernel, "compare_words", kWordBytes, "ld.global.u64 %x, [%place];",
                            "ld.global.u64 %y, [%place];", kSame, kNever);
  absl::SubstituteAndAppend(&text, kKernel, "compare_bytes", 1, "ld.global.u8 %x, [%place];",
                            "ld.global.u8 %y, [%place];", kSame, kNever);
  for (const auto& gather : kGathers)
    absl::SubstituteAndAppend(&text, kGather, gather.num_bytes, gather.type, gather.held);
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
  for (const auto& gather : kGathers)
    RETURN_IF_ERROR(find(gather.name, &kernels->gathers_[gather.num_bytes]));
  ASSIGN_OR_RETURN(kernels->result_, GpuMemory::Allocate(context, sizeof(Differences)));
  return kernels;
}

absl::StatusOr<Differences> TensorKernels::CompareReals(RealType type, int64_t num_elements,
                                                        const Bounds& bounds, const Expected& expected,
                                                        Address actual) {
  return Launch(reals_.at(type), num_elements, bounds, expected, actual);
}

absl::StatusOr<bool> TensorKernels::AreSame(int64_t num_bytes, Address expected, Address actual) {
  const bool aligned = (expected | actual) % kWordBytes == 0;
  const int64_t num_words = aligned ? num_bytes / kWordBytes : 0;
  ASSIGN_OR_RETURN(const Differences words, Launch(words_, num_words, {}, {expected, 0}, actual));
  const auto done = static_cast<Address>(num_words * kWordBytes);
  ASSIGN_OR_RETURN(const Differences bytes, Launch(bytes_, num_bytes - num_words * kWordBytes, {},
                                                   {expected + done, 0}, actual + done));
  return words.num_outliers + bytes.num_outliers == 0;
}

std::optional<Places> JoinedPlaces(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  if (shape.size() != strides.size()) return std::nullopt;
  Places places;
  size_t first = places.extents.size();  // of those that are taken, from the innermost on
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    const bool joins =
        first < places.extents.size() && strides[d] == places.strides[first] * places.extents[first];
    if (joins) {
      places.extents[first] *= shape[d];
      continue;
    }
    if (first == 0) return std::nullopt;
    --first;
    places.extents[first] = shape[d];
    places.strides[first] = strides[d];
  }
  return places;
}

absl::Status TensorKernels::Gather(int64_t element_bytes, Places places, Address from, Address to) {
  const auto kernel = gathers_.find(element_bytes);
  if (kernel == gathers_.end())
    return absl::UnimplementedError(absl::StrCat("elements of ", element_bytes, " bytes"));
  int64_t count = 1;
  for (const int64_t extent : places.extents) count *= extent;
  if (count == 0) return absl::OkStatus();
  if (count > std::numeric_limits<uint32_t>::max())
    return absl::UnimplementedError(absl::StrCat(count, " elements that lie apart"));
  auto& [extents, strides] = places;
  void* arguments[] = {&from,       &to,         &count,      &extents[1], &extents[2],
                       &extents[3], &strides[0], &strides[1], &strides[2], &strides[3]};
  const auto num_blocks = static_cast<unsigned>(std::min(kBlocksMax, (count + kThreads - 1) / kThreads));
  const Driver& driver = context_->driver();
  return driver.Check(driver.api().cuLaunchKernel(kernel->second, num_blocks, 1, 1, kThreads, 1, 1, 0,
                                                  nullptr, arguments, nullptr),
                      "cuLaunchKernel");
}

absl::StatusOr<Differences> TensorKernels::Launch(Function kernel, int64_t num_elements, const Bounds& bounds,
                                                  Expected expected, Address actual) {
  Differences found;
  if (num_elements == 0) return found;
  const Driver& driver = context_->driver();
  RETURN_IF_ERROR(result_->Fill(0, 0, result_->num_bytes()));
  Bounds values = bounds;
  Address result = result_->address();
  void* arguments[] = {&expected.elements, &expected.margins, &actual,       &num_elements,
                       &values.absolute,   &values.relative,  &values.reach, &result};
  const auto num_blocks =
      static_cast<unsigned>(std::min(kBlocksMax, (num_elements + kThreads - 1) / kThreads));
  RETURN_IF_ERROR(driver.Check(
      driver.api().cuLaunchKernel(kernel, num_blocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr),
      "cuLaunchKernel"));
  static_assert(sizeof(Differences) == 64, "as the kernels lay it out");
  RETURN_IF_ERROR(result_->Read(&found, 0, sizeof(found)));
  return found;
}

}  // namespace warpsmith::cuda
