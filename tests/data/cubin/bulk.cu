// Copies of whole blocks and tensors by the copy engine (sm_90 and later).
#include <cstdint>

__global__ void bulk(float* y, const float* x) {
  __shared__ alignas(128) float staged[1024];
  __shared__ uint64_t barrier;
  const auto place = static_cast<uint32_t>(__cvta_generic_to_shared(staged));
  const auto done = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  const uint32_t zero = 0;
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(done));
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];" ::"r"(
          place),
      "l"(x), "r"(done)
      : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %3}], "
      "[%2];" ::"r"(place),
      "l"(x + 4096), "r"(done), "r"(zero)
      : "memory");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;" ::"l"(y), "r"(place)
               : "memory");
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %2}], [%1];" ::"l"(y + 4096),
               "r"(place), "r"(zero)
               : "memory");
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 4096;" ::"l"(y),
               "r"(place)
               : "memory");
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %2}], [%1];" ::"l"(
                   y + 4096),
               "r"(place), "r"(zero)
               : "memory");
}
