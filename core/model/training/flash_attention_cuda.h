// FlashAttention 2 as LibTorch has it.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_FLASH_ATTENTION_CUDA_H_
#define WARPSMITH_CORE_MODEL_TRAINING_FLASH_ATTENTION_CUDA_H_

#include <cuda_bf16.h>

#include <memory>

#include "core/model/training/training_attention.h"

namespace warpsmith {

// Dao, arXiv 2307.08691. `device` counts as CUDA does. head_dim is at most 256 and a multiple of 8. With
// `deterministic` the backward pass gives the same bits each time, at half the speed; this sets LibTorch's switch for
// the whole process.
std::unique_ptr<TrainingAttention<__nv_bfloat16>> MakeFlashAttention(int device, bool deterministic);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_FLASH_ATTENTION_CUDA_H_
