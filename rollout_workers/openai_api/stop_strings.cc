#include "rollout_workers/openai_api/stop_strings.h"

#include <algorithm>
#include <utility>

namespace warpsmith::openai {
namespace {

// Bytes at the end of `text` that begin `stop` and are not all of it.
size_t BeginningOf(std::string_view stop, std::string_view text) {
  for (size_t length = std::min(stop.size() - 1, text.size()); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

std::string StopStrings::Push(std::string_view piece) {
  if (stopped_) return "";
  held_back_ += piece;
  size_t found = std::string::npos, num_uncertain = 0;
  for (const std::string& stop : stops_) {
    found = std::min(found, held_back_.find(stop));
    num_uncertain = std::max(num_uncertain, BeginningOf(stop, held_back_));
  }
  stopped_ = found != std::string::npos;
  const size_t num_certain = stopped_ ? found : held_back_.size() - num_uncertain;
  std::string certain = held_back_.substr(0, num_certain);
  held_back_.erase(0, stopped_ ? held_back_.size() : num_certain);
  return certain;
}

std::string StopStrings::Finish() { return std::exchange(held_back_, ""); }

}  // namespace warpsmith::openai
