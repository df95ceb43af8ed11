// A dense decoder for sampling: a KV cache of slots, and steps that mix prefill and decoding of many
// sequences.
//
// A row of logits depends on the weights and its own sequence alone, to the bit: not on what else is in the
// step, on how its prompt was cut into steps, or on the number of threads. TrainingModel::TokenLogProbs gives the
// same bits for the same weights.
#ifndef WARPSMITH_CORE_MODEL_DECODER_H_
#define WARPSMITH_CORE_MODEL_DECODER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernels/thread_pool.h"
#include "core/model/backend.h"
#include "core/model/parameters.h"

namespace warpsmith {

// Keys and values of `num_slots` sequences of up to `max_tokens` each. A slot is filled from position 0 and
// reused by starting at position 0 again; nothing needs clearing. Made by Decoder::MakeCache; not
// thread-safe.
class KvCache {
 public:
  ~KvCache();
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;

  int num_slots() const;
  int64_t max_tokens() const;

  // Makes the first `num_tokens` of slot `to` those of slot `from`, to the bit: a prompt that several
  // sequences begin with is prefilled once. Slots differ, `num_tokens` is at most what `from` holds.
  void CopyPrefix(int from, int to, int64_t num_tokens);

 private:
  friend class Decoder;
  struct State;
  explicit KvCache(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Consecutive tokens of one sequence: a prompt, a part of one, or the token sampled last.
struct StepSequence {
  int slot = 0;
  int64_t first_position = 0;      // tokens already in the slot
  std::vector<int32_t> token_ids;  // at least one
  bool wants_logits = true;        // of the last token: false for all but the last part of a prompt
};

struct DecoderOptions {
  // Of the parameters. Kernels compute float32 on a CPU; operators also float64 and bfloat16, on any device.
  Placement placement;
  // Threads of the CPU kernels; must outlive the decoder. Null: the calling thread alone.
  ThreadPool* pool = nullptr;
  // As TrainingModelOptions::num_token_ids, V below: no logit is computed for the padding of a head, so
  // nothing can draw it.
  int64_t num_token_ids = 0;
};

// Owns a copy of the weights in the form that decoding wants. One thread at a time.
class Decoder {
 public:
  // Zero weights until SetParameters. The errors of CheckBackend.
  static absl::StatusOr<Decoder> Create(const ModelConfig& config, Backend backend,
                                        DecoderOptions options = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  // A cache of empty slots.
  KvCache MakeCache(int num_slots, int64_t max_tokens) const;

  // Replaces the weights between two steps; `parameters` is not kept. INVALID_ARGUMENT if its configuration
  // or placement is another than the decoder's. Entries of caches made with older weights stay as they were.
  absl::Status SetParameters(const Parameters& parameters);

  // Runs the tokens of all `sequences` (slots distinct) and appends their keys and values to the cache.
  // Logits [R, V] float32 on the CPU, contiguous, a row for each sequence that wants them, in order.
  // INVALID_ARGUMENT, with the cache untouched, on a slot, position or token out of range or a slot named
  // twice. `cache` was made by this decoder or its like.
  absl::StatusOr<at::Tensor> Step(const std::vector<StepSequence>& sequences, KvCache& cache);

 private:
  struct State;
  explicit Decoder(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DECODER_H_
