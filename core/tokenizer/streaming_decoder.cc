#include "core/tokenizer/streaming_decoder.h"

#include <utility>

#include "core/base/utf8.h"

namespace warpsmith {

std::string StreamingDecoder::Push(int32_t id) {
  held_back_ += tokenizer_->DecodeBytes({&id, 1}, special_);
  const size_t num_certain = held_back_.size() - IncompleteUtf8Suffix(held_back_);
  std::string text = ReplaceInvalidUtf8(std::string_view(held_back_).substr(0, num_certain));
  held_back_.erase(0, num_certain);
  return text;
}

std::string StreamingDecoder::Finish() { return ReplaceInvalidUtf8(std::exchange(held_back_, "")); }

}  // namespace warpsmith
