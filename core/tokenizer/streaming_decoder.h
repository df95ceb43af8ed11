// Decodes ids as they are sampled.
#ifndef WARPSMITH_CORE_TOKENIZER_STREAMING_DECODER_H_
#define WARPSMITH_CORE_TOKENIZER_STREAMING_DECODER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tokenizer/tokenizer.h"

namespace warpsmith {

// Gives out text as soon as it is certain: the bytes of a character that is not complete are held back. All
// texts together are what Tokenizer::Decode makes of all ids. Not thread-safe.
class StreamingDecoder {
 public:
  // `tokenizer` must outlive this.
  StreamingDecoder(const Tokenizer* tokenizer, DecodeSpecial special)
      : tokenizer_(tokenizer), special_(special) {}

  // The text that `id` completes; often empty.
  std::string Push(int32_t id);

  // Bytes that begin a character which no id has completed yet.
  std::string_view held_back() const { return held_back_; }

  // What is still held back, as U+FFFD. The decoder is then as new.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  DecodeSpecial special_;
  std::string held_back_;  // at most 3 bytes between calls
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_STREAMING_DECODER_H_
