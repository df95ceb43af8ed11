#include "reward_service/referee/tensors/gpu_store.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

std::unique_ptr<GpuStore> Open() {
  auto store = GpuStore::Open(0);
  REQUIRE(store.ok());
  return *std::move(store);
}

TEST_CASE("memory of a GPU is what was written to it, and what a jail maps by its descriptor") {
  const FakeGpu gpu;
  const auto store = Open();
  CHECK(store->on_gpu());
  const auto memory = store->Make(100);
  REQUIRE(memory.ok());
  TensorMemory& bytes = **memory;
  bytes.FillAll('a');
  bytes.Fill('b', 10, 5);
  bytes.Write("xyz", 12, 3);
  CHECK(std::string(bytes.Read(8, 8), 8) == "aabbxyza");
  const auto context = cuda::GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto seen = cuda::GpuMemory::Import(context->get(), bytes.fd(), 100, cuda::Access::kRead);
  REQUIRE(seen.ok());
  std::string text(8, ' ');
  REQUIRE((*seen)->Read(text.data(), 8, 8).ok());
  CHECK(text == "aabbxyza");
  CHECK(store->Health().ok());
}

TEST_CASE("a GPU without memory keeps no copy from being made, however many of its words are to be late") {
  constexpr size_t kNumWords = 2 * (cuda::LateWords::kPairsMax + 1);
  FakeGpu gpu;
  const auto store = Open();
  const auto made = store->Make(8 * kNumWords), to = store->Make(8 * kNumWords);
  REQUIRE((made.ok() && to.ok()));
  std::string text;
  for (size_t i = 0; i < kNumWords; ++i) text += std::to_string(10'000'000 + i);
  (*made)->Write(text.data(), 0, 8 * kNumWords);
  const auto kept = store->Keep(**made, 0, 8 * kNumWords, KeptIn::kDevice);
  REQUIRE(kept.ok());
  TensorCopy copy{&*kept, 0, 8 * kNumWords, {}};
  for (int64_t i = 0; i < static_cast<int64_t>(kNumWords); i += 2) copy.late.push_back({8 * i, 8 * (i + 1)});
  gpu.Say("fail cuMemAllocAsync 2\n");
  store->Copy({copy}, to->get());
  CHECK(std::string((*to)->Read(0, 16), 16) == "1000000110000000");
  CHECK(std::string((*to)->Read(8 * kNumWords - 16, 16), 16) == text.substr(text.size() - 16));
  REQUIRE(store->GiveLateWords().ok());
  CHECK(std::string((*to)->Read(0, 8 * kNumWords), 8 * kNumWords) == text);
  CHECK(store->Failure().ok());
}

TEST_CASE(
    "late words of copies are other ones until they are given; what they are copied from is as before") {
  FakeGpu gpu;
  const auto store = Open();
  const auto made = store->Make(24), to = store->Make(64);
  REQUIRE((made.ok() && to.ok()));
  (*made)->Write("first---second--third---", 0, 24);
  const auto kept = store->Keep(**made, 0, 24, KeptIn::kDevice);
  REQUIRE(kept.ok());
  const OwnTensors on_host(std::make_unique<char[]>(8));
  std::memcpy(on_host.get(), "on host-", 8);
  // The same tensors in two places, with other words.
  store->Copy({{&*kept, 0, 24, {{8, 16}}}, {&*kept, 32, 24, {{16, 0}}}, {&on_host, 56, 8, {{0, 0}}}},
              to->get());
  const auto text = [&] { return std::string((*to)->Read(0, 64), 64); };
  const std::string gap(8, '\0');
  CHECK(text() == "first---third---second--" + gap + "third---second--first---" + "on host-");
  CHECK(std::string(kept->Read(0, 24), 24) == "first---second--third---");
  const auto longer_us = store->GiveLateWords();
  REQUIRE(longer_us.ok());
  CHECK(*longer_us >= 0);
  CHECK(text() == "first---second--third---" + gap + "first---second--third---" + "on host-");
  CHECK(*store->GiveLateWords() == 0);
  CHECK(store->Health().ok());
  store->Copy({{&*kept, 0, 24, {{0, 8}}}}, to->get());
  gpu.Say("late cuCtxSynchronize 20\n");
  CHECK(*store->GiveLateWords() > 10'000);
  gpu.Say("");
  store->Copy({{&*kept, 0, 24, {{0, 8}}}}, to->get());
  gpu.Say("fail cuLaunchKernel 700\n");
  CHECK_FALSE(store->GiveLateWords().ok());
  CHECK_FALSE(store->Health().ok());
}

TEST_CASE("memory that a program names is read; what it names wrongly is no fault of the GPU") {
  FakeGpu gpu;
  const auto store = Open();
  const auto memory = store->Make(100);
  REQUIRE(memory.ok());
  (*memory)->Write("xyz", 12, 3);
  std::string text(3, ' ');
  const auto read = [&](const std::string& handle, int64_t offset) {
    return store->ReadForeign(handle, offset, 3, text.data());
  };
  const std::string handle = HandleOf((*memory)->fd());
  REQUIRE(read(handle, 12).ok());
  CHECK(text == "xyz");
  for (const std::string& wrong :
       {std::string(), std::string("00"), handle + "00", std::string(128, '0'), std::string(128, 'f'),
        std::string(128, 'g'), std::string(127, '0') + " ", HandleOf(-1)}) {
    INFO(wrong);
    CHECK_FALSE(read(wrong, 12).ok());
  }
  CHECK_FALSE(read(handle, -1).ok());
  CHECK_FALSE(read(handle, int64_t{1} << 40).ok());
  gpu.Say("fail cuMemcpyDtoH_v2 1\n");
  CHECK_FALSE(read(handle, 12).ok());
  gpu.Say("");
  CHECK(store->Health().ok());
}

TEST_CASE("memory that a program names is opened once to be compared and read, until it is closed") {
  FakeGpu gpu;
  const auto store = Open();
  const auto made = store->Make(16);
  REQUIRE(made.ok());
  auto kept = store->Keep(**made, 0, 16, KeptIn::kDevice);
  REQUIRE(kept.ok());
  TensorSpec spec;
  spec.bits = 8;
  spec.shape = {16};
  spec.num_elements = spec.num_bytes = 16;
  const auto compares = [&](const std::string& handle) {
    return store->CompareForeign({spec, Tolerance{}, *kept}, {handle}).ok();
  };
  const std::string handle = HandleOf((*made)->fd());
  REQUIRE(compares(handle));
  gpu.Say("fail cuIpcOpenMemHandle_v2 1\n");
  CHECK(compares(handle));
  std::string text(3, ' ');
  CHECK(store->ReadForeign(handle, 0, 3, text.data()).ok());
  store->CloseForeign({"another"});
  CHECK(compares(handle));
  store->CloseForeign({handle});
  CHECK_FALSE(compares(handle));
  CHECK_FALSE(store->ReadForeign(handle, 0, 3, text.data()).ok());
  gpu.Say("");
  CHECK(store->Health().ok());
}

TEST_CASE(
    "margins that lie behind outputs are those of their elements, and a mean that is too large is told "
    "alone") {
  FakeGpu gpu;
  const auto store = Open();
  TensorSpec spec;
  spec.code = 2;
  spec.bits = 32;
  spec.shape = {2};
  spec.num_elements = 2;
  spec.num_bytes = 8;
  spec.offset = 8;
  spec.margins_offset = 16;
  const std::vector<float> kept_values = {0, 0, 1, 2, 0.5, 0.25}, answer = {1.25, 2.25};
  const auto made = store->Make(24);
  REQUIRE(made.ok());
  (*made)->Write(reinterpret_cast<const char*>(kept_values.data()), 0, 24);
  const auto kept = store->Keep(**made, 0, 24, KeptIn::kDevice);
  REQUIRE(kept.ok());
  (*made)->Write(reinterpret_cast<const char*>(answer.data()), 0, 8);
  const auto compare = [&](const Tolerance& tolerance) {
    return *store->CompareInPlace({spec, tolerance, *kept}, **made, 0);
  };
  CHECK(compare({.has_margins = true}).right());
  CHECK(compare({.bulk_max = 0.75, .has_margins = true}).right());  // (1/4 + 1) / 2
  const Comparison bulk = compare({.bulk_max = 0.5, .has_margins = true});
  CHECK(bulk.num_wrong == 1);
  CHECK(bulk.first_difference.empty());
  CHECK(compare({.absolute = 0.5}).right());
  const Comparison outliers = compare({.absolute = 0.125, .outliers_max = 1});
  CHECK(outliers.num_wrong == 2);
  CHECK(outliers.first_outlier == 0);
  CHECK(outliers.first_difference == "[0]: 1.25, expected 1");
}

TEST_CASE("an output whose elements lie apart is compared as if they did not, and what is wrong is told") {
  FakeGpu gpu;
  const auto store = Open();
  TensorSpec spec;
  spec.code = 2;
  spec.bits = 32;
  spec.shape = {2, 3};
  spec.num_elements = 6;
  spec.num_bytes = 24;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6}, transposed = {0, 1, 4, 2, 5, 3, 6};
  const auto made = store->Make(64);
  REQUIRE(made.ok());
  (*made)->Write(reinterpret_cast<const char*>(values.data()), 0, 24);
  auto kept = store->Keep(**made, 0, 24, KeptIn::kDevice);
  REQUIRE(kept.ok());
  (*made)->Write(reinterpret_cast<const char*>(transposed.data()), 0, 28);
  const std::string handle = HandleOf((*made)->fd());
  const auto compare = [&](int64_t offset, std::vector<int64_t> strides) {
    return store->CompareForeign({spec, Tolerance{}, *kept}, {handle, offset, std::move(strides)});
  };
  const auto right = compare(4, {1, 2});
  REQUIRE(right.ok());
  CHECK(right->right());
  CHECK(right->first_difference.empty());
  const auto wrong = compare(4, {});
  REQUIRE(wrong.ok());
  CHECK(wrong->num_wrong == 4);
  CHECK(wrong->max_absolute_error == 2);
  CHECK(wrong->first_difference == "[0, 1]: 4, expected 2");
  (*made)->FillAll(kPoisonByte);
  const auto unwritten = compare(0, {3, 1});
  REQUIRE(unwritten.ok());
  CHECK(unwritten->num_unwritten == 6);
  CHECK(unwritten->num_non_finite == 0);
  CHECK(unwritten->first_difference == "[0, 0]: never written, expected 1");
  // To the end of the last element, and no byte further.
  CHECK(compare(2 << 20, {1, 2}).status().code() == absl::StatusCode::kOutOfRange);
  CHECK_FALSE(compare(2, {1, 2}).ok());
  CHECK(absl::IsUnimplemented(compare(4, {1}).status()));
  gpu.Say("fail cuLaunchKernel 700\n");
  CHECK_FALSE(compare(4, {1, 2}).ok());
}

TEST_CASE("what fails at the GPU is kept: nothing counts that was measured since") {
  FakeGpu gpu;
  const auto store = Open();
  const auto memory = store->Make(100);
  REQUIRE(memory.ok());
  gpu.Say("fail cuMemcpyHtoD_v2 719\n");
  (*memory)->Write("abc", 0, 3);
  gpu.Say("");
  CHECK(absl::IsInternal(store->Health()));
  const auto other = Open();
  gpu.Say("fail cuLaunchKernel 719\n");
  CHECK(absl::IsInternal(other->AwaitDone(1).status()));
  gpu.Say("");
  CHECK(absl::IsInternal(other->Health()));
}

TEST_CASE("memory of tensors that are kept no more is taken for others, and given back where it is much") {
  constexpr char kNoMore[] = "memory 16\nfail cuMemAllocAsync 2\n";
  FakeGpu gpu("memory 16\n");
  const auto store = Open();
  const int64_t unused_max = store->device_bytes() / 16;
  const auto memory = store->Make(2 * unused_max);
  REQUIRE(memory.ok());
  const auto keep = [&](int64_t num_bytes) { return store->Keep(**memory, 0, num_bytes, KeptIn::kDevice); };
  REQUIRE(keep(2 * unused_max).ok());  // and freed at once
  gpu.Say(kNoMore);
  (*memory)->Write("xyz", 0, 3);
  {
    const auto again = keep(100);
    REQUIRE(again.ok());
    CHECK(std::string(again->Read(0, 3), 3) == "xyz");
    REQUIRE(keep(unused_max / 2 - 100).ok());
    CHECK_FALSE(keep(unused_max / 2).ok());  // for want of memory what is unused goes back to the device
    CHECK_FALSE(keep(1).ok());
  }
  CHECK(keep(100).ok());
  gpu.Say("memory 16\n");
  CHECK(keep(unused_max).ok());
  gpu.Say(kNoMore);
  CHECK(keep(unused_max).ok());
  CHECK(store->Health().ok());
}

TEST_CASE("tensors that are kept on the host are as good to compare, and no more than it may have") {
  FakeGpu gpu;
  const auto store = Open();
  gpu.Say("fail cuMemAllocAsync 2\n");
  const auto made = store->Make(24);
  REQUIRE(made.ok());
  TensorMemory& memory = **made;
  const double values[] = {1, 2, 3};
  memory.Write(reinterpret_cast<const char*>(values), 0, 24);
  const auto keep = [&] { return store->Keep(memory, 0, 24, KeptIn::kHost); };
  CHECK(absl::IsResourceExhausted(keep().status()));
  store->set_host_draw_bytes_max(40);
  {
    const auto kept = keep();
    REQUIRE(kept.ok());
    CHECK(absl::IsResourceExhausted(keep().status()));
    CHECK(memory.IsSame(*kept, 0, 0, 24));
    TensorSpec spec;
    spec.code = 2;
    spec.bits = 64;
    spec.shape = {3};
    spec.num_elements = 3;
    spec.num_bytes = 24;
    CHECK(store->CompareInPlace({spec, Tolerance{}, *kept}, memory, 0)->right());
    memory.Fill(0, 8, 8);
    const auto wrong = store->CompareInPlace({spec, Tolerance{}, *kept}, memory, 0);
    REQUIRE(wrong.ok());
    CHECK(wrong->num_wrong == 1);
    CHECK(wrong->first_difference == "[1]: 0, expected 2");
    store->Copy({{.from = &*kept, .offset = 0, .num_bytes = 24, .late = {}}}, &memory);
    store->Settle();
    CHECK(memory.IsSame(*kept, 0, 0, 24));
  }
  CHECK(keep().ok());
  // While another draw is there, what is freed serves the next of its size, and makes room for one of another.
  {
    const auto other = store->Keep(memory, 0, 8, KeptIn::kHost);
    REQUIRE(other.ok());
    CHECK(keep().ok());
    gpu.Say("fail cuMemHostRegister_v2 2\n");
    CHECK(keep().ok());
    CHECK(absl::IsResourceExhausted(store->Keep(memory, 0, 16, KeptIn::kHost).status()));
    gpu.Say("");
    CHECK(store->Keep(memory, 0, 16, KeptIn::kHost).ok());
    CHECK(absl::IsResourceExhausted(store->Keep(memory, 0, 40, KeptIn::kHost).status()));
  }
  CHECK(store->Keep(memory, 0, 20, KeptIn::kHost).ok());
  CHECK(store->Health().ok());
}

TEST_CASE("a GPU without memory refuses, and is healthy") {
  FakeGpu gpu;
  const auto store = Open();
  gpu.Say("fail cuMemCreate 2\n");
  CHECK(absl::IsResourceExhausted(store->Make(100).status()));
  CHECK(absl::IsResourceExhausted(store->MeasureCopying().status()));
  CHECK(store->Health().ok());
}

}  // namespace
}  // namespace warpsmith
