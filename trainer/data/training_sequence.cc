#include "trainer/data/training_sequence.h"

#include <cstring>

#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

template <typename T>
void Put(const T* values, size_t count, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

// Reads from the front of a view, refusing to pass its end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  absl::Status Take(T* values, uint64_t count) {
    if (count > bytes_.size() / sizeof(T))
      return absl::InvalidArgumentError("training sequences are cut short");
    if (count > 0) std::memcpy(values, bytes_.data(), count * sizeof(T));
    bytes_.remove_prefix(count * sizeof(T));
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status TakeVector(std::vector<T>& values) {
    uint64_t count = 0;
    RETURN_IF_ERROR(Take(&count, 1));
    if (count > bytes_.size() / sizeof(T))
      return absl::InvalidArgumentError("training sequences are cut short");
    values.resize(count);
    return Take(values.data(), count);
  }

  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

absl::Status TakeSequence(Reader& reader, TrainingSequence& sequence) {
  RETURN_IF_ERROR(reader.TakeVector(sequence.tokens));
  RETURN_IF_ERROR(reader.TakeVector(sequence.worker_log_probs));
  RETURN_IF_ERROR(reader.Take(&sequence.num_prompt_tokens, 1));
  RETURN_IF_ERROR(reader.Take(&sequence.advantage, 1));
  if (sequence.num_prompt_tokens < 1 || sequence.num_prompt_tokens > sequence.num_tokens()) {
    return absl::InvalidArgumentError("a training sequence has an impossible prompt length");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t CountAnswerTokens(const std::vector<TrainingSequence>& sequences) {
  int64_t count = 0;
  for (const TrainingSequence& sequence : sequences) count += sequence.num_answer_tokens();
  return count;
}

std::string EncodeSequences(const std::vector<TrainingSequence>& sequences) {
  std::string bytes;
  for (const TrainingSequence& sequence : sequences) {
    const uint64_t sizes[2] = {sequence.tokens.size(), sequence.worker_log_probs.size()};
    Put(&sizes[0], 1, bytes);
    Put(sequence.tokens.data(), sizes[0], bytes);
    Put(&sizes[1], 1, bytes);
    Put(sequence.worker_log_probs.data(), sizes[1], bytes);
    Put(&sequence.num_prompt_tokens, 1, bytes);
    Put(&sequence.advantage, 1, bytes);
  }
  return bytes;
}

absl::StatusOr<std::vector<TrainingSequence>> DecodeSequences(std::string_view bytes) {
  std::vector<TrainingSequence> sequences;
  for (Reader reader(bytes); !reader.empty();) {
    RETURN_IF_ERROR(TakeSequence(reader, sequences.emplace_back()));
  }
  return sequences;
}

}  // namespace warpsmith
