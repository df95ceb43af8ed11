#include "core/model/training/flash_attention_cuda.h"

#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"
#include "tests/support/host_attention.h"

namespace warpsmith {
namespace {

TEST_CASE("attention of packed sequences and its gradient are those of LibTorch's operators on the host") {
  constexpr int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 64;
  PackedBatch batch;
  batch.Append(std::vector<int64_t>(130));
  batch.Append(std::vector<int64_t>(1));
  batch.Append(std::vector<int64_t>(37));
  const int64_t tokens = batch.num_tokens();
  const auto heads_of = [&](int64_t heads, uint64_t seed) {
    return RandomBfloat16s(tokens * heads * kHeadDim, seed);
  };
  const std::vector<float> queries = heads_of(kHeads, 1), keys = heads_of(kKvHeads, 2),
                           values = heads_of(kKvHeads, 3), gradient = heads_of(kHeads, 4);

  HostAttention<float> host;
  const AttentionShape on_host = {&batch, nullptr, 130, kHeads, kKvHeads, kHeadDim};
  const AttentionHeads<float> host_heads = {queries.data(), keys.data(), values.data()};
  const auto expected = host.Forward(on_host, host_heads, nullptr);
  REQUIRE(expected.ok());
  const auto expected_gradients = host.Backward(on_host, host_heads, *expected, gradient.data(), nullptr);
  REQUIRE(expected_gradients.ok());

  const auto flash = MakeFlashAttention(0, /*deterministic=*/true);
  const DeviceVector<int32_t> offsets(std::vector<int32_t>{0, 130, 131, 168});
  const Bfloat16Array device_queries(queries), device_keys(keys), device_values(values),
      device_gradient(gradient);
  const AttentionShape on_device = {&batch, offsets.get(), 130, kHeads, kKvHeads, kHeadDim};
  const AttentionHeads<__nv_bfloat16> device_heads = {device_queries.get(), device_keys.get(),
                                                      device_values.get()};
  const auto found = flash->Forward(on_device, device_heads, nullptr);
  INFO(found.status());
  REQUIRE(found.ok());
  const auto found_gradients =
      flash->Backward(on_device, device_heads, *found, device_gradient.get(), nullptr);
  INFO(found_gradients.status());
  REQUIRE(found_gradients.ok());

  const auto check = [&](const __nv_bfloat16* of_device, const float* of_host, int64_t heads) {
    std::vector<__nv_bfloat16> stored(tokens * heads * kHeadDim);
    REQUIRE(cudaMemcpy(stored.data(), of_device, stored.size() * sizeof(stored[0]), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    std::vector<float> values_found;
    for (const __nv_bfloat16& value : stored) values_found.push_back(Load(value));
    CHECK(Distance(values_found, {of_host, of_host + stored.size()}) < 1e-2);
  };
  check(found->attended, expected->attended, kHeads);
  check(found_gradients->heads.queries, expected_gradients->heads.queries, kHeads);
  check(found_gradients->heads.keys, expected_gradients->heads.keys, kKvHeads);
  check(found_gradients->heads.values, expected_gradients->heads.values, kKvHeads);
}

}  // namespace
}  // namespace warpsmith
