#include "core/tokenizer/prompt_template.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/absl_view.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/utf8.h"

namespace warpsmith {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";
constexpr int64_t kFileBytesMax = 1 << 20;

bool IsSlotName(std::string_view name) {
  const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_allowed);
}

struct MarkBars {
  std::string_view begin, end;
};
constexpr MarkBars kMarkBars[] = {{"<|", "|>"}, {"<\uFF5C", "\uFF5C>"}};

// The mark that `text` begins with; empty: none.
std::string_view MarkAt(std::string_view text) {
  for (const auto& [begin, end] : kMarkBars) {
    if (text.substr(0, begin.size()) != begin) continue;
    const size_t close = text.find(end, begin.size());
    if (close == std::string_view::npos) continue;
    const std::string_view mark = text.substr(0, close + end.size());
    const bool has_name = close > begin.size() && mark.find_first_of(" \t\r\n") == std::string_view::npos;
    if (has_name) return mark;
  }
  return "";
}

absl::Status NotASlot(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t column = at - (before.rfind('\n') + 1) + 1;
  return absl::InvalidArgumentError(absl::StrCat("template:", line, ":", column, ": ",
                                                 Escape(text.substr(at, 30)),
                                                 " is no slot; write {{name}} in lower-case letters"));
}

}  // namespace

absl::StatusOr<PromptTemplate> PromptTemplate::Load(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  absl::StatusOr<PromptTemplate> parsed = Parse(std::string(WithoutByteOrderMark(text)));
  if (parsed.ok()) return parsed;
  return absl::Status(parsed.status().code(), absl::StrCat(path.string(), ": ", parsed.status().message()));
}

absl::StatusOr<PromptTemplate> PromptTemplate::Parse(std::string text) {
  PromptTemplate parsed;
  parsed.sha256_ = Sha256Hex(text);
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = text.find(kOpen, at);
    const size_t literal_end = std::min(open, text.size());
    if (literal_end > at) parsed.parts_.push_back({text.substr(at, literal_end - at)});
    if (open == std::string::npos) break;
    const size_t close = text.find(kClose, open);
    if (close == std::string::npos) return NotASlot(text, open);
    const std::string name = text.substr(open + kOpen.size(), close - open - kOpen.size());
    if (!IsSlotName(name)) return NotASlot(text, open);
    parsed.parts_.push_back({name, true});
    at = close + kClose.size();
  }
  return parsed;
}

std::vector<std::string> PromptTemplate::slot_names() const {
  std::set<std::string> names;
  for (const Part& part : parts_) {
    if (part.is_slot) names.insert(part.text);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> PromptTemplate::Marks() const {
  std::vector<std::string> marks;
  for (const Part& part : parts_) {
    const std::string_view text = part.is_slot ? "" : std::string_view(part.text);
    for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
      if (const std::string_view mark = MarkAt(text.substr(at)); !mark.empty()) marks.emplace_back(mark);
    }
  }
  return marks;
}

absl::Status PromptTemplate::CheckMarks(const Tokenizer& tokenizer) const {
  for (const std::string& mark : Marks()) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode(mark, SpecialTokens::kParse));
    if (ids.size() == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat("the mark ", Escape(mark, 100),
                                                   " is no token of the tokenizer but ", ids.size(),
                                                   ", and would be read as text"));
  }
  return absl::OkStatus();
}

absl::Status PromptTemplate::CheckSlots(const PromptSlots& slots) const {
  const std::vector<std::string> names = slot_names();
  for (const std::string& name : names) {
    if (slots.count(name) == 0)
      return absl::InvalidArgumentError(absl::StrCat("the slot ", name, " is not given"));
  }
  for (const auto& [name, text] : slots) {
    if (!std::binary_search(names.begin(), names.end(), name)) {
      return absl::InvalidArgumentError(absl::StrCat("the template has no slot ", Escape(name, 100),
                                                     "; it has ",
                                                     names.empty() ? "none" : absl::StrJoin(names, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TextPart>> PromptTemplate::Fill(const PromptSlots& slots) const {
  RETURN_IF_ERROR(CheckSlots(slots));
  std::vector<TextPart> filled;
  for (const Part& part : parts_) {
    if (part.is_slot) {
      filled.push_back({slots.at(part.text), SpecialTokens::kAsText});
    } else {
      filled.push_back({part.text, SpecialTokens::kParse});
    }
  }
  return filled;
}

absl::StatusOr<std::vector<int32_t>> PromptTemplate::Render(const Tokenizer& tokenizer,
                                                            const PromptSlots& slots) const {
  ASSIGN_OR_RETURN(const std::vector<TextPart> parts, Fill(slots));
  return tokenizer.EncodeParts(parts);
}

absl::StatusOr<std::string> PromptTemplate::RenderText(const PromptSlots& slots) const {
  ASSIGN_OR_RETURN(const std::vector<TextPart> parts, Fill(slots));
  std::string text;
  for (const TextPart& part : parts) text += part.text;
  return text;
}

}  // namespace warpsmith
