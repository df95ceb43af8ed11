#include "reward_service/cuda/gpu_memory.h"

#include <array>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"

namespace warpsmith::cuda {
namespace {

TEST_CASE("memory is filled, written and read, whatever its size") {
  const FakeGpu gpu;
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto memory = GpuMemory::Create(context->get(), 100);
  REQUIRE(memory.ok());
  REQUIRE((*memory)->Fill('a', 0, 100).ok());
  REQUIRE((*memory)->Write("xyz", 10, 3).ok());
  std::string text(5, ' ');
  REQUIRE((*memory)->Read(text.data(), 9, 5).ok());
  CHECK(text == "axyza");
  CHECK(GpuMemory::Create(context->get(), 0).ok());
}

TEST_CASE("who imports memory sees the same bytes, and writes only where it may") {
  const FakeGpu gpu;
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto memory = GpuMemory::Create(context->get(), 5'000'000);
  REQUIRE(memory.ok());
  const auto fd = (*memory)->Export();
  REQUIRE(fd.ok());
  const auto other = GpuMemory::Import(context->get(), fd->get(), 5'000'000, Access::kReadWrite);
  REQUIRE(other.ok());
  REQUIRE((*other)->Write("end", 4'999'997, 3).ok());
  std::array<char, 3> text{};
  REQUIRE((*memory)->Read(text.data(), 4'999'997, 3).ok());
  CHECK(std::string(text.begin(), text.end()) == "end");
  CHECK((*other)->address() != (*memory)->address());
  CHECK(GpuMemory::Import(context->get(), fd->get(), 5'000'000, Access::kRead).ok());
}

TEST_CASE("what another process has allocated is read within its bounds, and nothing else") {
  FakeGpu gpu;
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto memory = GpuMemory::Create(context->get(), 100);
  REQUIRE(memory.ok());
  REQUIRE((*memory)->Write("abc", 50, 3).ok());
  const auto fd = (*memory)->Export();
  REQUIRE(fd.ok());
  const std::string bytes = absl::HexStringToBytes(HandleOf(fd->get()));
  IpcHandle handle;
  std::memcpy(handle.bytes, bytes.data(), sizeof(handle.bytes));
  const int64_t size = (*memory)->mapped_bytes();
  std::string text(3, ' ');
  const auto read = [&](int64_t offset, int64_t num_bytes) {
    const auto foreign = ForeignMemory::Open(context->get(), handle);
    return foreign.ok() ? (*foreign)->Read(text.data(), offset, num_bytes) : foreign.status();
  };
  REQUIRE(read(50, 3).ok());
  CHECK(text == "abc");
  CHECK(read(size - 3, 3).ok());
  CHECK(read(size, 0).ok());
  CHECK(absl::IsOutOfRange(read(size - 2, 3)));
  CHECK(absl::IsOutOfRange(read(-1, 3)));
  CHECK(absl::IsOutOfRange(read(INT64_MAX, 3)));
  CHECK(absl::IsOutOfRange(read(0, INT64_MAX)));
  gpu.Say("fail cuMemGetAddressRange_v2 1\n");
  CHECK_FALSE(read(50, 3).ok());
  gpu.Say("");
  handle = {};
  CHECK_FALSE(read(50, 3).ok());
  CHECK((*context)->Synchronise().ok());
}

TEST_CASE("a part of other memory is copied to where it should be") {
  const FakeGpu gpu;
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto own = GpuMemory::Allocate(context->get(), 8);
  const auto shared = GpuMemory::Create(context->get(), 8);
  REQUIRE((own.ok() && shared.ok()));
  REQUIRE((*shared)->Write("abcdefgh", 0, 8).ok());
  REQUIRE((*own)->Fill('-', 0, 8).ok());
  REQUIRE((*own)->Copy(**shared, 2, 5, 3).ok());
  std::string text(8, ' ');
  REQUIRE((*own)->Read(text.data(), 0, 8).ok());
  CHECK(text == "-----cde");
}

TEST_CASE("what is freed stays in the pool for the next, until it is returned") {
  FakeGpu gpu;
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto pool = MemoryPool::Open(context->get());
  REQUIRE(pool.ok());
  (*pool)->ReturnUnused(0);
  CHECK((*pool)->unused_bytes() == 0);
  auto first = GpuMemory::Allocate(context->get(), 100), second = GpuMemory::Allocate(context->get(), 8);
  REQUIRE((first.ok() && second.ok()));
  first->reset();
  CHECK((*pool)->unused_bytes() == 100);
  gpu.Say("fail cuMemAllocAsync 2\n");
  CHECK(absl::IsResourceExhausted(GpuMemory::Allocate(context->get(), 101).status()));
  CHECK(GpuMemory::Allocate(context->get(), 60).ok());
  CHECK((*pool)->ReturnUnused(40));
  CHECK((*pool)->unused_bytes() == 40);
  CHECK_FALSE((*pool)->ReturnUnused(40));
  gpu.Say("fail cuCtxSynchronize 700\n");
  CHECK_FALSE((*pool)->ReturnUnused(0));
  for (const char* name : {"cuDeviceGetDefaultMemPool", "cuMemPoolSetAttribute"}) {
    gpu.Say(std::string("fail ") + name + " 801\n");
    CHECK(absl::IsInternal(MemoryPool::Open(context->get()).status()));
  }
}

TEST_CASE("a GPU without memory, or without its mind, is told apart") {
  FakeGpu gpu;
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  gpu.Say("fail cuMemCreate 2\n");
  CHECK(absl::IsResourceExhausted(GpuMemory::Create(context->get(), 1).status()));
  gpu.Say("fail cuCtxSynchronize 700\n");
  CHECK(absl::IsInternal((*context)->Synchronise()));
  gpu.Say("fail cuDevicePrimaryCtxRetain 999\n");
  CHECK(absl::IsInternal(GpuContext::Open(0).status()));
}

TEST_CASE("a GPU is idle once no probe had to wait for another's turn") {
  FakeGpu gpu;
  const auto context = GpuContext::Open(0);
  REQUIRE(context.ok());
  const auto probe = IdleProbe::Create(context->get());
  REQUIRE(probe.ok());
  CHECK((*probe)->AwaitIdle(1).ok());
  gpu.Say("busy 3\n");
  CHECK((*probe)->AwaitIdle(60).ok());
  CHECK(gpu.script() == "busy 0\n");
  gpu.Say("busy 1000000\n");
  CHECK(absl::IsDeadlineExceeded((*probe)->AwaitIdle(0.01)));
  gpu.Say("fail cuLaunchKernel 719\n");
  CHECK(absl::IsInternal((*probe)->AwaitIdle(1)));
}

}  // namespace
}  // namespace warpsmith::cuda
