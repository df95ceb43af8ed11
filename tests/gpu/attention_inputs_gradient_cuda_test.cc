#include "core/kernels/training/attention_inputs_gradient_cuda.h"

#include <cstdint>
#include <type_traits>
#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int64_t kKvHeads = 2, kGroup = 3, kHeads = kKvHeads * (kGroup + 2), kPositions = 64;

// Arrays of one case, on the device or, as vectors, on the host.
template <typename Stored, typename Floats, typename Integers>
struct Arrays {
  Stored qkv, bias, query_norm, key_norm, query_grad, key_grad, value_grad;
  Floats query_norm_grad, key_norm_grad, cosines, sines, parts;
  Integers positions;
};
using HostArrays = Arrays<std::vector<float>, std::vector<float>, std::vector<int32_t>>;
template <typename T>
using DeviceArrays = Arrays<StoredArray<T>, DeviceArray, DeviceVector<int32_t>>;

template <typename T>
HostArrays MakeArrays(int64_t rows, int64_t head_dim) {
  std::vector<int32_t> positions(rows);
  for (int64_t row = 0; row < rows; ++row) positions[row] = static_cast<int32_t>(row * 7 % kPositions);
  return {RandomStored<T>(rows * kHeads * head_dim, 1),
          RandomStored<T>(kHeads * head_dim, 2),
          RandomStored<T>(head_dim, 3),
          RandomStored<T>(head_dim, 4),
          RandomStored<T>(rows * kKvHeads * kGroup * head_dim, 5),
          RandomStored<T>(rows * kKvHeads * head_dim, 6),
          RandomStored<T>(rows * kKvHeads * head_dim, 7),
          RandomFloats(head_dim, 8),
          RandomFloats(head_dim, 9),
          RandomFloats(kPositions * head_dim / 2, 10),
          RandomFloats(kPositions * head_dim / 2, 11),
          std::vector<float>(NumGradientParts(rows) * 2 * head_dim),
          positions};
}

// The gradient of qkv takes its place.
template <typename T>
AttentionInputsGradient<T> GradientOf(int64_t rows, int64_t head_dim, bool has_norm, bool has_bias,
                                      const auto& pointer) {
  AttentionInputsGradient<T> g;
  g.forward = {.rows = rows,
               .num_kv_heads = kKvHeads,
               .group_size = kGroup,
               .head_dim = head_dim,
               .eps = 1e-6f,
               .qkv = pointer.qkv,
               .bias = has_bias ? pointer.bias : nullptr,
               .query_norm = has_norm ? pointer.query_norm : nullptr,
               .key_norm = has_norm ? pointer.key_norm : nullptr,
               .cosines = pointer.cosines,
               .sines = pointer.sines,
               .positions = pointer.positions};
  g.query_grad = pointer.query_grad;
  g.key_grad = pointer.key_grad;
  g.value_grad = pointer.value_grad;
  g.qkv_grad = pointer.qkv;
  g.parts = pointer.parts;
  g.query_norm_grad = has_norm ? pointer.query_norm_grad : nullptr;
  g.key_norm_grad = has_norm ? pointer.key_norm_grad : nullptr;
  return g;
}

template <typename T>
Arrays<T*, float*, const int32_t*> Pointers(const auto& arrays, const auto& pointer_of) {
  return {pointer_of(arrays.qkv),           pointer_of(arrays.bias),
          pointer_of(arrays.query_norm),    pointer_of(arrays.key_norm),
          pointer_of(arrays.query_grad),    pointer_of(arrays.key_grad),
          pointer_of(arrays.value_grad),    pointer_of(arrays.query_norm_grad),
          pointer_of(arrays.key_norm_grad), pointer_of(arrays.cosines),
          pointer_of(arrays.sines),         pointer_of(arrays.parts),
          pointer_of(arrays.positions)};
}

template <typename T>
void CheckGradient(int64_t rows, int64_t head_dim, bool has_norm, bool has_bias) {
  INFO(rows << " rows, heads of " << head_dim << (has_norm ? ", norm" : "") << (has_bias ? ", bias" : ""));
  HostArrays host = MakeArrays<T>(rows, head_dim);
  const DeviceArrays<T> device = {StoredArray<T>(host.qkv),
                                  StoredArray<T>(host.bias),
                                  StoredArray<T>(host.query_norm),
                                  StoredArray<T>(host.key_norm),
                                  StoredArray<T>(host.query_grad),
                                  StoredArray<T>(host.key_grad),
                                  StoredArray<T>(host.value_grad),
                                  DeviceArray(host.query_norm_grad),
                                  DeviceArray(host.key_norm_grad),
                                  DeviceArray(host.cosines),
                                  DeviceArray(host.sines),
                                  DeviceArray(host.parts),
                                  DeviceVector<int32_t>(host.positions)};
  const auto on_device = Pointers<T>(device, [](const auto& array) { return array.get(); });
  REQUIRE(LaunchAttentionInputsGradient(GradientOf<T>(rows, head_dim, has_norm, has_bias, on_device),
                                        nullptr) == cudaSuccess);
  const auto on_host = Pointers<float>(host, [](const auto& array) {
    return const_cast<std::remove_const_t<std::remove_reference_t<decltype(array[0])>>*>(array.data());
  });
  AttentionInputsGradientReference(GradientOf<float>(rows, head_dim, has_norm, has_bias, on_host),
                                   kStoredDtype<T>);
  CHECK(Distance(device.qkv.Read(), host.qkv) < kRounding<T>);
  CHECK(Distance(device.query_norm_grad.Read(), host.query_norm_grad) < 1e-5);
  CHECK(Distance(device.key_norm_grad.Read(), host.key_norm_grad) < 1e-5);
}

TEMPLATE_TEST_CASE("the gradient of attention's inputs on the device equals the CPU's", "", __nv_bfloat16,
                   float) {
  for (const int64_t rows : {1, 5, 600}) {
    for (const int64_t head_dim : {64, 128, 256}) {
      for (const bool has_norm : {false, true}) {
        CheckGradient<TestType>(rows, head_dim, has_norm, /*has_bias=*/!has_norm);
      }
    }
  }
  CheckGradient<TestType>(9, 128, /*has_norm=*/true, /*has_bias=*/true);
}

}  // namespace
}  // namespace warpsmith
