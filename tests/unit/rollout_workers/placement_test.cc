#include "rollout_workers/placement.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a device is the CPU, the first GPU, one by number or several") {
  CHECK_FALSE(ParsePlacement("cpu").value().has_value());
  CHECK(ParsePlacement("cuda").value()->devices == std::vector{0});
  CHECK(ParsePlacement("cuda:0").value()->devices == std::vector{0});
  CHECK(ParsePlacement("cuda:7").value()->devices == std::vector{7});
  CHECK(ParsePlacement("cuda:0,1").value()->devices == std::vector{0, 1});
  CHECK(ParsePlacement("cuda:3,1").value()->devices == std::vector{3, 1});
  CHECK(ParsePlacement("cuda:0-3").value()->devices == std::vector{0, 1, 2, 3});
  CHECK(ParsePlacement("cuda:0-1,4-5").value()->devices == std::vector{0, 1, 4, 5});
}

TEST_CASE("a text that names no device is refused with what may be given") {
  for (const char* const text :
       {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x", "cuda: 1", "cuda:64", "cpu:2", "cuda:0,", "cuda:,1",
        "cuda:1-0", "cuda:0-", "cuda:-", "cuda:0-1-2", "cuda:0-64", "cuda:0, 1"}) {
    const absl::Status status = ParsePlacement(text).status();
    CAPTURE(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("give cpu, cuda or cuda:N"));
  }
}

TEST_CASE("a GPU computes in bfloat16 unless float32 is asked for, the CPU in float32 alone") {
  CHECK(ParsePlacement("cuda:1").value()->dtype == DeviceDtype::kBfloat16);
  CHECK(ParsePlacement("cuda", "auto").value()->dtype == DeviceDtype::kBfloat16);
  CHECK(ParsePlacement("cuda", "bfloat16").value()->dtype == DeviceDtype::kBfloat16);
  CHECK(ParsePlacement("cuda:0,1", "float32").value()->dtype == DeviceDtype::kFloat32);
  CHECK(ParsePlacement("cuda", "float16").value()->dtype == DeviceDtype::kFloat16);
  CHECK_FALSE(ParsePlacement("cpu", "auto").value().has_value());
  CHECK_FALSE(ParsePlacement("cpu", "float32").value().has_value());
  const absl::Status halves = ParsePlacement("cpu", "bfloat16").status();
  CHECK(absl::IsInvalidArgument(halves));
  CHECK_THAT(std::string(halves.message()), Catch::Contains("the CPU computes in float32"));
  for (const char* const text : {"", "half", "fp16", "Float32"}) {
    const absl::Status status = ParsePlacement("cuda", text).status();
    CAPTURE(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("give auto, bfloat16, float16 or float32"));
  }
}

TEST_CASE("a GPU that is named twice is refused") {
  for (const char* const text : {"cuda:1,1", "cuda:0-2,1", "cuda:0,1,2,0"}) {
    const absl::Status status = ParsePlacement(text).status();
    CAPTURE(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("twice"));
  }
}

TEST_CASE("a share of the GPU's memory may follow the dtype") {
  CHECK_FALSE(ParsePlacementWords("cpu").value().has_value());
  CHECK(ParsePlacementWords("cuda:1").value()->memory_share == CudaPlacement().memory_share);
  const CudaPlacement placement = *ParsePlacementWords("cuda:0,1 float16 0.25").value();
  CHECK((placement.devices == std::vector{0, 1} && placement.dtype == DeviceDtype::kFloat16));
  CHECK(placement.memory_share == 0.25);
  for (const char* const text : {"cuda auto 0", "cuda auto 1.1", "cuda auto x", "cuda auto nan", "cuda auto ",
                                 "cuda auto 0.6 0.6", "cpu auto 0.6"}) {
    const absl::Status status = ParsePlacementWords(text).status();
    CAPTURE(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("as in cuda:0 auto 0.6"));
  }
  for (const char* const text : {"", "gpu auto 0.6", "cuda 0.6"}) CHECK_FALSE(ParsePlacementWords(text).ok());
}

}  // namespace warpsmith
