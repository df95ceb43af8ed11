#include "core/model/staged_upload_cuda.h"

#include <atomic>

#include "tests/gpu/device_array.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("every chunk arrives at its place, however many there are") {
  for (const int64_t count : {0, 1, 2, 40}) {
    constexpr int64_t kLength = 1000, kStride = 1500;
    const DeviceVector<uint16_t> device(std::vector<uint16_t>(count * kStride + 1, 7));
    std::vector<StagingChunk> chunks;
    for (int64_t i = 0; i < count; ++i) chunks.push_back({i * kStride, kLength, {}});
    std::atomic<int64_t> filled = 0;
    const absl::Status status =
        UploadStaged(chunks, 0, device.get(), [&](const StagingChunk& chunk, uint16_t* staging) {
          for (int64_t i = 0; i < chunk.length; ++i) staging[i] = static_cast<uint16_t>(chunk.offset + i);
          ++filled;
        });
    REQUIRE(status.ok());
    CHECK(filled == count);
    const std::vector<uint16_t> found = device.Read();
    int64_t wrong = 0;
    for (int64_t i = 0; i < count * kStride; ++i) {
      wrong += found[i] != (i % kStride < kLength ? static_cast<uint16_t>(i) : 7);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("an upload to a GPU that is not there fails with CUDA's message") {
  const absl::Status status = UploadStaged({{0, 1, {}}}, 99, nullptr, [](const StagingChunk&, uint16_t*) {});
  CHECK(status.code() == absl::StatusCode::kInternal);
  CHECK(std::string(status.message()).find("cudaSetDevice") != std::string::npos);
}

}  // namespace warpsmith
