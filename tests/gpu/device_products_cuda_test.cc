#include "core/model/device_products_cuda.h"

#include "tests/gpu/linear_layer.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kRows = 40;

}  // namespace

TEST_CASE("a product of bfloat16 is streamed up to its rows and planned beyond, and equals the reference") {
  const Library library;
  DeviceProducts<__nv_bfloat16> products{
      std::make_unique<LinearPlans>(library.handle, library.workspace(), std::vector<int64_t>{8, kRows},
                                    DepthSplit::kAllowed, kStepSearch),
      8};
  const LinearShape shape{.columns = 136, .depth = 256, .has_residual = true};
  const Layer layer(shape, kRows);
  REQUIRE(products.plans->Prepare(shape, layer.operands(shape), {}, nullptr) == CUBLAS_STATUS_SUCCESS);
  CHECK(products.Streams(8));
  CHECK(!products.Streams(9));
  for (const int64_t rows : {1, 8, 9, 40}) {
    REQUIRE(Product(products, shape, layer.operands(shape), rows, nullptr).ok());
    std::vector<double> expected(rows * shape.columns);
    LinearReference(shape, rows, layer.x.data(), layer.weight.data(), nullptr, layer.residual.data(),
                    expected.data());
    CHECK(LargestLinearError(FirstRows(layer.y.Read(), std::ssize(expected)), expected, shape.depth) <= 1.0);
  }
}

TEST_CASE("a product of float32 runs by plans alone, and one that is not prepared names its shape") {
  const Library library;
  DeviceProducts<float> products{
      std::make_unique<LinearPlansOf<float>>(library.handle, library.workspace(), std::vector<int64_t>{kRows},
                                             DepthSplit::kNever, kFirstProposal),
      0};
  CHECK(!products.Streams(1));
  const LinearShape shape{.columns = 136, .depth = 256, .output = kStoredOutput<float>};
  const std::vector<float> x = RandomFloats(kRows * shape.depth, 1),
                           weight = RandomFloats(shape.columns * shape.depth, 2);
  const DeviceArray x_device(x), weight_device(weight), y(std::vector<float>(kRows * shape.columns));
  const LinearOperandsOf<float> operands{.x = x_device.get(), .weight = weight_device.get(), .y = y.get()};
  const absl::Status unknown = Product(products, shape, operands, 3, nullptr);
  CHECK_THAT(std::string(unknown.message()), Catch::Contains("product of 3 rows, 136 columns and depth 256"));
  REQUIRE(products.plans->Prepare(shape, operands, {}, nullptr) == CUBLAS_STATUS_SUCCESS);
  std::vector<double> expected(kRows * shape.columns);
  LinearReference(shape, kRows, x.data(), weight.data(), nullptr, nullptr, expected.data());
  for (const int64_t rows : {1, 40}) {
    REQUIRE(Product(products, shape, operands, rows, nullptr).ok());
    const std::vector<float> found = FirstRows(y.Read(), rows * shape.columns);
    double largest = 0;
    for (size_t i = 0; i < found.size(); ++i) largest = std::max(largest, std::abs(found[i] - expected[i]));
    CHECK(largest <= 1e-4);
  }
}

}  // namespace warpsmith
