// All kernels for the instruction set that the including source is compiled for. Everything here has internal
// linkage and uses no library templates: a function compiled for AVX-512 must never be the one that the
// linker keeps for all.
#ifndef WARPSMITH_CORE_KERNELS_VARIANT_H_
#define WARPSMITH_CORE_KERNELS_VARIANT_H_

#include <string.h>

#include "core/kernels/kernel_set.h"

#if defined(__AVX512F__)
#include "core/kernels/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "core/kernels/simd_avx2.h"
#else
#include "core/kernels/simd_portable.h"
#endif

// In this order: each builds on the ones before.
// clang-format off
#include "core/kernels/product_simd.h"
#include "core/kernels/rows_simd.h"
#include "core/kernels/attention_simd.h"
#include "core/kernels/adamw_simd.h"
// clang-format on

namespace warpsmith {
namespace {

template <typename T>
constexpr KernelSet<T> MakeKernelSet(const char* name, void (*adamw)(const AdamWRange&)) {
  return {
      .name = name,
      .multiply = Multiply<T>,
      .pack_panels = PackPanels<T>,
      .rms_norm = RmsNorm<T>,
      .rms_norm_gradient = RmsNormGradient<T>,
      .norm_rotate = NormRotate<T>,
      .norm_rotate_gradient = NormRotateGradient<T>,
      .swiglu = SwiGlu<T>,
      .swiglu_gradient = SwiGluGradient<T>,
      .attention = Attend<T>,
      .attention_gradient = AttendGradient<T>,
      .score_row = ScoreRow<T>,
      .score_row_gradient = ScoreRowGradient<T>,
      .add = Add<T>,
      .adamw = adamw,
  };
}

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_VARIANT_H_
