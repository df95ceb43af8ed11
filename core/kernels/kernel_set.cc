#include "core/kernels/kernel_set.h"

#include "core/base/check.h"

namespace warpsmith {

// Defined by the variants' sources.
extern const KernelSet<float> kPortableFloatKernels;
extern const KernelSet<double> kPortableDoubleKernels;
#if defined(__x86_64__)
extern const KernelSet<float> kAvx2FloatKernels;
extern const KernelSet<double> kAvx2DoubleKernels;
extern const KernelSet<float> kAvx512FloatKernels;
extern const KernelSet<double> kAvx512DoubleKernels;
#endif

namespace {

// `variant` counts from portable upwards.
template <typename T>
const KernelSet<T>* Table(CpuVariant variant);

#if defined(__x86_64__)
template <>
const KernelSet<float>* Table<float>(CpuVariant variant) {
  if (variant == CpuVariant::kAvx512) return &kAvx512FloatKernels;
  return variant == CpuVariant::kAvx2 ? &kAvx2FloatKernels : &kPortableFloatKernels;
}
template <>
const KernelSet<double>* Table<double>(CpuVariant variant) {
  if (variant == CpuVariant::kAvx512) return &kAvx512DoubleKernels;
  return variant == CpuVariant::kAvx2 ? &kAvx2DoubleKernels : &kPortableDoubleKernels;
}
#else
template <>
const KernelSet<float>* Table<float>(CpuVariant) {
  return &kPortableFloatKernels;
}
template <>
const KernelSet<double>* Table<double>(CpuVariant) {
  return &kPortableDoubleKernels;
}
#endif

}  // namespace

CpuVariant BestCpuVariant() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return CpuVariant::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CpuVariant::kAvx2;
#endif
  return CpuVariant::kPortable;
}

template <typename T>
const KernelSet<T>& KernelsOf(CpuVariant variant) {
  WS_CHECK(variant <= BestCpuVariant()) << "this machine has no variant " << static_cast<int>(variant);
  return *Table<T>(variant);
}

template <typename T>
const KernelSet<T>& Kernels() {
  static const KernelSet<T>& best = KernelsOf<T>(BestCpuVariant());
  return best;
}

template const KernelSet<float>& KernelsOf<float>(CpuVariant);
template const KernelSet<double>& KernelsOf<double>(CpuVariant);
template const KernelSet<float>& Kernels<float>();
template const KernelSet<double>& Kernels<double>();

}  // namespace warpsmith
