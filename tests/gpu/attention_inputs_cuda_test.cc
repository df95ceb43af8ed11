#include "core/kernels/attention_inputs_cuda.h"

#include <cmath>

#include "tests/gpu/device_rate.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kPositions = 700;

struct Shape {
  int64_t rows, num_kv_heads, group_size, head_dim;
  bool biased, normed;
};

// Arrays of a shape on the host; entries of the pages that no row writes keep what they have.
struct Arrays {
  explicit Arrays(const Shape& s)
      : shape(s),
        row_size(s.num_kv_heads * (s.group_size + 2) * s.head_dim),
        qkv(RandomBfloat16s(s.rows * row_size, 1)),
        bias(RandomBfloat16s(row_size, 2)),
        query_norm(RandomBfloat16s(s.head_dim, 3)),
        key_norm(RandomBfloat16s(s.head_dim, 4)),
        queries(s.rows * s.num_kv_heads * s.group_size * s.head_dim),
        keys(RandomBfloat16s(2 * s.rows * s.num_kv_heads * s.head_dim, 5)),
        values(RandomBfloat16s(std::ssize(keys), 6)) {
    for (int64_t i = 0; i < kPositions * s.head_dim / 2; ++i) {
      cosines.push_back(std::cos(0.37f * static_cast<float>(i)));
      sines.push_back(std::sin(0.37f * static_cast<float>(i)));
    }
    for (int64_t row = 0; row < s.rows; ++row) {
      positions.push_back(static_cast<int32_t>(row * 131 % kPositions));
      entries.push_back(static_cast<int32_t>(2 * (s.rows - 1 - row) + row % 2));
    }
  }

  AttentionInputs<float> OnHost() {
    return {shape.rows,
            shape.num_kv_heads,
            shape.group_size,
            shape.head_dim,
            1e-6f,
            qkv.data(),
            shape.biased ? bias.data() : nullptr,
            shape.normed ? query_norm.data() : nullptr,
            shape.normed ? key_norm.data() : nullptr,
            cosines.data(),
            sines.data(),
            positions.data(),
            entries.data(),
            queries.data(),
            keys.data(),
            values.data()};
  }

  Shape shape;
  int64_t row_size;
  std::vector<float> qkv, bias, query_norm, key_norm, queries, keys, values, cosines, sines;
  std::vector<int32_t> positions, entries;
};

// The same arrays on the device.
struct DeviceArrays {
  explicit DeviceArrays(const Arrays& a)
      : shape(a.shape),
        qkv(a.qkv),
        bias(a.bias),
        query_norm(a.query_norm),
        key_norm(a.key_norm),
        queries(a.queries),
        keys(a.keys),
        values(a.values),
        cosines(a.cosines),
        sines(a.sines),
        positions(a.positions),
        entries(a.entries) {}

  AttentionInputs<__nv_bfloat16> inputs() const {
    return {shape.rows,
            shape.num_kv_heads,
            shape.group_size,
            shape.head_dim,
            1e-6f,
            qkv.get(),
            shape.biased ? bias.get() : nullptr,
            shape.normed ? query_norm.get() : nullptr,
            shape.normed ? key_norm.get() : nullptr,
            cosines.get(),
            sines.get(),
            positions.get(),
            entries.get(),
            queries.get(),
            keys.get(),
            values.get()};
  }

  Shape shape;
  Bfloat16Array qkv, bias, query_norm, key_norm, queries, keys, values;
  DeviceArray cosines, sines;
  DeviceVector<int32_t> positions, entries;
};

TEST_CASE("queries, keys and values on the device equal the CPU's for odd groups and heads") {
  for (const Shape& shape : {Shape{1, 1, 1, 4, false, false},
                             {3, 2, 5, 12, true, false},
                             {5, 1, 8, 64, false, true},
                             {2, 3, 3, 96, true, true},
                             {65, 8, 4, 128, false, true},
                             {33, 4, 7, 132, true, false},
                             {9, 2, 2, 256, true, true}}) {
    INFO(shape.rows << " rows, " << shape.num_kv_heads << " x " << shape.group_size << " heads of "
                    << shape.head_dim);
    Arrays arrays(shape);
    const DeviceArrays device(arrays);
    REQUIRE(LaunchAttentionInputs(device.inputs(), nullptr) == cudaSuccess);
    AttentionInputsReference(arrays.OnHost());
    // Sums of squares in another order, and products that are fused.
    CHECK(LargestError(device.queries.Read(), arrays.queries) <= 1.0);
    CHECK(LargestError(device.keys.Read(), arrays.keys) <= 1.0);
    CHECK(device.values.Read() == arrays.values);  // one float32 addition and one rounding
  }
}

TEST_CASE("a row alone has the bits that it has among 64 others") {
  Arrays all({65, 8, 4, 128, true, true});
  Arrays one({1, 8, 4, 128, true, true});
  constexpr int64_t kRow = 64;
  one.qkv.assign(all.qkv.begin() + kRow * all.row_size, all.qkv.begin() + (kRow + 1) * all.row_size);
  one.positions[0] = all.positions[kRow];
  const DeviceArrays batch(all), alone(one);
  REQUIRE(LaunchAttentionInputs(batch.inputs(), nullptr) == cudaSuccess);
  REQUIRE(LaunchAttentionInputs(alone.inputs(), nullptr) == cudaSuccess);
  const std::vector<float> queries = batch.queries.Read(), query = alone.queries.Read();
  CHECK(std::equal(query.begin(), query.end(), queries.begin() + kRow * std::ssize(query)));
  const std::vector<float> keys = batch.keys.Read(), key = alone.keys.Read();
  const int64_t entry = 8 * 128;
  CHECK(std::equal(key.begin() + one.entries[0] * entry, key.begin() + (one.entries[0] + 1) * entry,
                   keys.begin() + all.entries[kRow] * entry));
}

TEST_CASE("heads that no warp can rotate are refused") {
  AttentionInputs<__nv_bfloat16> inputs;
  inputs.rows = inputs.num_kv_heads = inputs.group_size = 1;
  for (const int64_t head_dim : {0, 6, 260}) {
    inputs.head_dim = head_dim;
    CHECK(LaunchAttentionInputs(inputs, nullptr) == cudaErrorInvalidValue);
  }
}

TEST_CASE("the rate of queries, keys and values at 64 and 4,096 rows of 8 groups of 4 heads of 128") {
  for (const int64_t rows : {64, 4096}) {
    const Arrays arrays({rows, 8, 4, 128, false, true});
    const DeviceArrays device(arrays);
    PrintRate(rows == 64 ? "attention inputs, 64 rows" : "attention inputs, 4096 rows",
              2 * arrays.qkv.size() * sizeof(uint16_t),
              [&] { return LaunchAttentionInputs(device.inputs(), nullptr); });
  }
}

}  // namespace
}  // namespace warpsmith
