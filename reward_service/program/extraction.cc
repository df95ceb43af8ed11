#include "reward_service/program/extraction.h"

namespace warpsmith {
namespace {

constexpr std::string_view kThinkingBegins = "<think>";
constexpr std::string_view kThinkingEnds = "</think>";
constexpr size_t kFenceLengthMin = 3;
constexpr size_t kIndentMax = 3;

struct Fence {
  char mark = 0;  // '`' or '~'; 0: the line is no fence
  size_t length = 0;
  bool bare = false;  // nothing but white space follows: the line may close a block
};

Fence ParseFence(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || begin > kIndentMax) return {};
  const char mark = line[begin];
  if (mark != '`' && mark != '~') return {};
  size_t end = line.find_first_not_of(mark, begin);
  if (end == std::string_view::npos) end = line.size();
  if (end - begin < kFenceLengthMin) return {};
  const std::string_view information = line.substr(end);
  if (mark == '`' && information.find('`') != std::string_view::npos) return {};  // inline code, not a fence
  return {mark, end - begin, information.find_first_not_of(" \t\r") == std::string_view::npos};
}

bool Closes(const Fence& fence, const Fence& opening) {
  return fence.bare && fence.mark == opening.mark && fence.length >= opening.length;
}

}  // namespace

std::string_view AfterThinking(std::string_view answer) {
  if (const size_t end = answer.rfind(kThinkingEnds); end != std::string_view::npos) {
    return answer.substr(end + kThinkingEnds.size());
  }
  return answer.find(kThinkingBegins) == std::string_view::npos ? answer : answer.substr(answer.size());
}

std::optional<std::string_view> ExtractProgram(std::string_view answer) {
  const std::string_view text = AfterThinking(answer);
  std::string_view program;
  Fence opening;
  size_t content_begin = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    const size_t next = end == std::string_view::npos ? text.size() : end + 1;
    if (end == std::string_view::npos) end = text.size();
    const Fence fence = ParseFence(text.substr(begin, end - begin));
    if (opening.mark == 0 && fence.mark != 0) {
      opening = fence;
      content_begin = next;
    } else if (opening.mark != 0 && Closes(fence, opening)) {
      program = text.substr(content_begin, begin - content_begin);
      opening = {};
    }
    begin = next;
  }
  if (opening.mark != 0) program = text.substr(content_begin);
  if (program.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos) return std::nullopt;
  return program;
}

}  // namespace warpsmith
