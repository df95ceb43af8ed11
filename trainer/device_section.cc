#include "trainer/device_section.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

// "cpu", "cuda" (the first GPU) or "cuda:N".
void ReadGpu(ConfigSection& section, std::optional<int>* gpu) {
  constexpr int kGpusMax = 64;
  std::string device = "cpu";
  section.Read(
      "device", &device,
      {"",
       "What computes the update: cpu, in float32, or cuda (the first GPU) or cuda:N, in bfloat16 with "
       "float32 masters. A worker may decode on the same GPU with a share of its memory "
       "(rollout.device: cuda:0 auto 0.4); trainer, worker and referee take turns there."});
  if (device == "cpu") return;
  int index = 0;
  const bool is_gpu =
      device == "cuda" || (device.starts_with("cuda:") && absl::SimpleAtoi(device.substr(5), &index) &&
                           index >= 0 && index < kGpusMax);
  if (is_gpu) *gpu = index;
  if (!is_gpu) {
    section.AddError("device", absl::StrCat("is \"", Escape(device, 64),
                                            "\": give cpu, cuda or cuda:N with N below ", kGpusMax));
  }
}

void ReadRecomputation(ConfigSection& section, Recomputation* recomputation) {
  std::vector<std::string> names;
  for (const Recomputation one : kRecomputations) names.emplace_back(NameOf(one));
  std::string name = names.front();
  section.ReadChoice(
      "recomputation", &name, names,
      {"",
       "Activations of a layer that the backward pass computes again, which costs time and saves "
       "memory: none, the mlp's, all_but_attention, or the whole layer's. The gradient is the same."});
  for (const Recomputation one : kRecomputations) {
    if (NameOf(one) == name) *recomputation = one;
  }
}

}  // namespace

void ReadTrainerDevice(ConfigSection& section, TrainerSection* trainer) {
  ReadGpu(section, &trainer->gpu);
  ReadRecomputation(section, &trainer->recomputation);
  section.Read(
      "deterministic", &trainer->deterministic,
      {"",
       "Whether a step that is repeated on a GPU gives the same bits. It slows attention's backward pass "
       "there; the CPU repeats its bits always."});
}

void CheckTrainerDevice(ConfigSection& section, const Configuration& configuration) {
  const TrainerSection& trainer = configuration.trainer;
  if (!trainer.gpu.has_value()) return;
  if (trainer.num_processes > 1) {
    section.AddError("num_processes",
                     absl::StrCat("is ", trainer.num_processes,
                                  ", and trainer.device is a GPU: one process trains there; give 1"));
  }
  if (configuration.cold_start.matrix_update == MatrixUpdate::kMuon) {
    section.AddError("device",
                     "is a GPU, which updates by AdamW alone: give cold_start.matrix_update adamw, or cpu");
  }
  const ModelConfig& model = configuration.model.config;
  const bool fits = (model.head_dim == 64 || model.head_dim == 128) && model.hidden_size % 8 == 0 &&
                    model.hidden_size <= 8192 && model.vocab_size % 8 == 0;
  if (!fits) {
    section.AddError("device",
                     absl::StrCat("is a GPU, and the model has head_dim ", model.head_dim, ", hidden_size ",
                                  model.hidden_size, ", vocab_size ", model.vocab_size,
                                  ": a GPU trains a head_dim of 64 or 128, a hidden_size that 8 divides, "
                                  "up to 8192, and a vocab_size that 8 divides"));
  }
}

}  // namespace warpsmith
