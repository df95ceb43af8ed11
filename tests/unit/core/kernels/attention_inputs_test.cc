#include "core/kernels/attention_inputs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr HeadPlace kThirdQuery = PlaceOfHead(4 + 1, 2);  // second group, its second head
static_assert(kThirdQuery.kind == HeadKind::kQuery && kThirdQuery.index == 3);
static_assert(PlaceOfHead(2, 2).kind == HeadKind::kKey && PlaceOfHead(2, 2).index == 0);
static_assert(PlaceOfHead(7, 2).kind == HeadKind::kValue && PlaceOfHead(7, 2).index == 1);

TEST_CASE("every head of a row has a place of its own, for any group size") {
  for (const int64_t group_size : {1, 3, 5, 8}) {
    constexpr int64_t kNumKvHeads = 4;
    std::vector<int> queries(kNumKvHeads * group_size), keys(kNumKvHeads), values(kNumKvHeads);
    for (int64_t head = 0; head < kNumKvHeads * (group_size + 2); ++head) {
      const HeadPlace place = PlaceOfHead(head, group_size);
      ++(place.kind == HeadKind::kQuery ? queries
         : place.kind == HeadKind::kKey ? keys
                                        : values)
            .at(place.index);
    }
    for (const std::vector<int>& counts : {queries, keys, values}) {
      CHECK(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
    }
  }
}

// Two rows of 1 KV head with 1 query, head_dim 2, so that a head is one pair. Angles: position 0 turns by nothing,
// position 1 by a right angle.
struct TwoRows {
  float qkv[12] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
  float cosines[2] = {1, 0}, sines[2] = {0, 1};
  int32_t positions[2] = {1, 0}, entries[2] = {2, 0};
  float queries[4] = {}, keys[6] = {}, values[6] = {};

  AttentionInputs<float> inputs() {
    AttentionInputs<float> all;
    all.rows = 2;
    all.num_kv_heads = all.group_size = 1;
    all.head_dim = 2;
    all.qkv = qkv;
    all.cosines = cosines;
    all.sines = sines;
    all.positions = positions;
    all.kv_entries = entries;
    all.queries = queries;
    all.key_pages = keys;
    all.value_pages = values;
    return all;
  }
};

TEST_CASE("queries are packed, keys and values go to their entries, and a right angle turns a pair") {
  TwoRows rows;
  AttentionInputsReference(rows.inputs());
  CHECK(std::vector<float>(rows.queries, rows.queries + 4) == std::vector<float>{-2, 1, 10, 20});
  CHECK(std::vector<float>(rows.keys, rows.keys + 6) == std::vector<float>{30, 40, 0, 0, -4, 3});
  CHECK(std::vector<float>(rows.values, rows.values + 6) == std::vector<float>{50, 60, 0, 0, 5, 6});
}

TEST_CASE("biases are added before norm and rotation, and each kind of head has its own norm") {
  TwoRows rows;
  const float bias[] = {2, 2, -3, 8, 0.5f, 0.25f}, query_norm[] = {1, 2}, key_norm[] = {4, 8};
  AttentionInputs<float> inputs = rows.inputs();
  inputs.bias = bias;
  inputs.query_norm = query_norm;
  inputs.key_norm = key_norm;
  AttentionInputsReference(inputs);
  // Row 0: query (3, 4) of RMS sqrt(12.5), key (0, 12) of RMS sqrt(72), value (5.5, 6.25).
  CHECK(rows.queries[0] == Approx(-2 * 4 / std::sqrt(12.5)).epsilon(0x1p-8));
  CHECK(rows.queries[1] == Approx(3 / std::sqrt(12.5)).epsilon(0x1p-8));
  CHECK(rows.keys[4] == Approx(-8 * 12 / std::sqrt(72.0)).epsilon(0x1p-8));
  CHECK(rows.keys[5] == Approx(0).margin(1e-6));
  CHECK(rows.values[4] == 5.5f);
  CHECK(rows.values[5] == 6.25f);
}

}  // namespace
}  // namespace warpsmith
