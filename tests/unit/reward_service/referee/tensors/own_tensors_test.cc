#include "reward_service/referee/tensors/own_tensors.h"

#include <cstring>
#include <string>
#include <utility>

#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith {
namespace {

constexpr char kText[] = "0123456789abcdefgh";
constexpr int64_t kNumBytes = 18;

// What a store keeps of memory that is written anew afterwards.
OwnTensors Kept(TensorStore& store) {
  const auto memory = *store.Make(kNumBytes);
  memory->Write(kText, 0, kNumBytes);
  OwnTensors kept = *store.Keep(*memory, 0, kNumBytes, KeptIn::kDevice);
  memory->Fill('-', 0, kNumBytes);
  return kept;
}

void CheckKept(TensorStore& store) {
  const OwnTensors kept = Kept(store);
  CHECK(std::string(kept.Read(2, 3), 3) == "234");
  const auto memory = *store.Make(kNumBytes);
  CHECK(std::string(memory->Read(0, kNumBytes), kNumBytes) == std::string(kNumBytes, '\0'));
  memory->Write(kept, 4, 1, 12);
  CHECK(std::string(memory->Read(0, 14), 14) == std::string("\0"
                                                            "456789abcdef"
                                                            "\0",
                                                            14));
  CHECK(memory->IsSame(kept, 4, 1, 12));
  CHECK_FALSE(memory->IsSame(kept, 4, 1, 13));
  CHECK_FALSE(memory->IsSame(kept, 4, 0, 12));
  CHECK(store.Health().ok());
}

TEST_CASE("tensors that are kept stay as they were, on the host and on a GPU") {
  CheckKept(HostStore());
  CHECK(Kept(HostStore()).on_gpu() == nullptr);
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  CheckKept(*store);
  CHECK(Kept(*store).get() == nullptr);
}

TEST_CASE("memory of a GPU takes and compares tensors of the host, too") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  auto bytes = std::make_unique<char[]>(kNumBytes);
  std::memcpy(bytes.get(), kText, kNumBytes);
  const OwnTensors on_host = std::move(bytes);
  const auto memory = *store->Make(kNumBytes);
  memory->Write(on_host, 0, 0, kNumBytes);
  CHECK(memory->IsSame(on_host, 0, 0, kNumBytes));
  CHECK_FALSE(memory->IsSame(on_host, 1, 0, 4));
}

TEST_CASE("an output is compared where it lies, and only beside draws of the same store") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  TensorSpec spec;
  spec.code = 2;
  spec.bits = 32;
  spec.shape = {2};
  spec.offset = 8;
  spec.num_elements = 2;
  spec.num_bytes = 8;
  const float expected[] = {0, 0, 1, 2}, actual[] = {1, 2.5F};
  const auto memory = *store->Make(16);
  memory->Write(reinterpret_cast<const char*>(expected), 0, 16);
  const OwnTensors kept = *store->Keep(*memory, 0, 16, KeptIn::kDevice);
  memory->Write(reinterpret_cast<const char*>(actual), 4, 8);
  const auto wrong = store->CompareInPlace({spec, {}, kept}, *memory, 4);
  REQUIRE(wrong.ok());
  CHECK(wrong->num_wrong == 1);
  CHECK(wrong->num_elements == 2);
  CHECK(wrong->max_absolute_error == 0.5);
  CHECK(store->CompareInPlace({spec, {.absolute = 0.5}, kept}, *memory, 4)->right());
  const OwnTensors on_host = std::make_unique<char[]>(16);
  CHECK(absl::IsUnimplemented(store->CompareInPlace({spec, {}, on_host}, *memory, 4).status()));
  CHECK(store->Health().ok());
  CHECK(absl::IsUnimplemented(HostStore().CompareInPlace({spec, {}, on_host}, *memory, 4).status()));
}

}  // namespace
}  // namespace warpsmith
