#include "core/kernels/tiled_linear_cuda.h"

#include "core/kernels/streamed_linear_cuda.h"
#include "tests/gpu/linear_layer.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

template <typename T>
T* Advanced(T* pointer, int64_t elements) {
  return pointer == nullptr ? nullptr : pointer + elements;
}

// By the kernel of few rows, as many at a time as it has. `Stored` is what y holds.
template <typename Stored>
cudaError_t LaunchFewAtATime(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                             OutputKind kind) {
  constexpr int64_t kFew = 32;
  const bool gated = kind == OutputKind::kSwiGlu;
  const int64_t columns = gated ? shape.columns / 2 : shape.columns;
  for (int64_t row = 0; row < rows; row += kFew) {
    const LinearOperands of = {operands.x + row * shape.depth, operands.weight, operands.bias,
                               Advanced(static_cast<const Stored*>(operands.residual), row * columns),
                               Advanced(static_cast<Stored*>(operands.y), row * columns)};
    const int64_t few = std::min(kFew, rows - row);
    const cudaError_t error =
        gated ? LaunchStreamedSwiGlu(shape, few, of, nullptr) : LaunchStreamedLinear(shape, few, of, nullptr);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// Every tile, in no cluster.
std::vector<TilePlan> AllTiles() {
  std::vector<TilePlan> tiles(std::begin(kOtherTiles), std::end(kOtherTiles));
  for (const int tile_columns : kTileColumns) {
    for (const int tile_rows : kTileRows) tiles.push_back({tile_rows, tile_columns});
  }
  return tiles;
}

// Calls `check` for every plan that is built for the shape.
template <typename Check>
void ForEachPlan(const LinearShape& shape, OutputKind kind, const Check& check) {
  for (const TileCluster cluster : {TileCluster{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}}) {
    for (TilePlan plan : AllTiles()) {
      plan.cluster = cluster;
      if (!IsBuilt(plan, CutOf(shape).parts > 1, kind)) continue;
      INFO(shape.columns << " x " << shape.depth << " in tiles of " << plan.tile_rows << " x "
                         << plan.tile_columns << ", clusters of " << cluster.rows << " x " << cluster.columns
                         << (plan.first == FirstOperand::kX ? ", x first, " : ", weights first, ")
                         << plan.turns << " turns");
      check(plan);
    }
  }
}

TEST_CASE("every plan of a product of many rows has the bits of few rows at a time") {
  for (const LinearShape& shape :
       {LinearShape{8, 8}, LinearShape{136, 1000, false, true}, LinearShape{1024, 4096, true, true},
        LinearShape{4096, 4096, false, true}, LinearShape{6144, 1032, true}}) {
    const Layer layer(shape, 300);
    const LinearOperands operands = layer.operands(shape);
    REQUIRE(LaunchFewAtATime<__nv_bfloat16>(shape, 300, operands, OutputKind::kStored) == cudaSuccess);
    const std::vector<float> expected = layer.y.Read();
    ForEachPlan(shape, OutputKind::kStored, [&](const TilePlan& plan) {
      for (const int64_t rows : {1, 65, 300}) {
        REQUIRE(cudaMemset(layer.y.get(), 0xFF, expected.size() * 2) == cudaSuccess);
        REQUIRE(LaunchTiledLinear(shape, rows, operands, OutputKind::kStored, plan, nullptr,
                                  KernelStart::kAfterFormer) == cudaSuccess);
        CHECK(FirstRows(layer.y.Read(), rows * shape.columns) == FirstRows(expected, rows * shape.columns));
      }
    });
  }
}

TEST_CASE("every plan of a gated product of many rows has the bits of few rows at a time") {
  for (const LinearShape& shape : {LinearShape{64, 72}, LinearShape{1056, 4096}, LinearShape{24576, 256}}) {
    const Layer layer(shape, 300);
    const LinearOperands operands = layer.operands(shape);
    const int64_t size = 300 * shape.columns / 2;
    REQUIRE(LaunchFewAtATime<__nv_bfloat16>(shape, 300, operands, OutputKind::kSwiGlu) == cudaSuccess);
    const std::vector<float> expected = FirstRows(layer.y.Read(), size);
    ForEachPlan(shape, OutputKind::kSwiGlu, [&](const TilePlan& plan) {
      REQUIRE(cudaMemset(layer.y.get(), 0xFF, size * 2) == cudaSuccess);
      REQUIRE(LaunchTiledLinear(shape, 300, operands, OutputKind::kSwiGlu, plan, nullptr,
                                KernelStart::kAfterFormer) == cudaSuccess);
      CHECK(FirstRows(layer.y.Read(), size) == expected);
    });
  }
}

TEST_CASE("every plan of logits of many rows has the bits of few rows at a time") {
  for (const int64_t columns : {1004, 20000}) {
    const LinearShape shape{.columns = columns, .depth = 512, .output = LinearOutput::kFloat32};
    const Layer layer(shape, 200);
    const DeviceArray logits(std::vector<float>(200 * columns));
    LinearOperands operands = layer.operands(shape);
    operands.y = logits.get();
    REQUIRE(LaunchFewAtATime<float>(shape, 200, operands, OutputKind::kFloat32) == cudaSuccess);
    const std::vector<float> expected = logits.Read();
    ForEachPlan(shape, OutputKind::kFloat32, [&](const TilePlan& plan) {
      REQUIRE(cudaMemset(logits.get(), 0xFF, expected.size() * 4) == cudaSuccess);
      REQUIRE(LaunchTiledLinear(shape, 200, operands, OutputKind::kFloat32, plan, nullptr,
                                KernelStart::kAfterFormer) == cudaSuccess);
      CHECK(logits.Read() == expected);
    });
  }
}

TEST_CASE("a plan that no kernel is built for is refused") {
  const LinearShape shape{8, 8};
  const Layer layer(shape, 8);
  CHECK(LaunchTiledLinear(shape, 8, layer.operands(shape), OutputKind::kStored, {72, 128, {1, 1}}, nullptr,
                          KernelStart::kAfterFormer) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace warpsmith
