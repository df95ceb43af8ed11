#include "reward_service/compiler/halves/cuda_text.h"

#include <algorithm>

#include "absl/algorithm/container.h"

namespace warpsmith {
namespace {

constexpr std::string_view kKernelAttributes[] = {"__global__",       "__launch_bounds__", "__maxnreg__",
                                                  "__cluster_dims__", "__block_size__",    "__attribute__"};
constexpr std::string_view kOtherAttributes[] = {"__align__", "alignas", "static_assert"};
constexpr std::string_view kTypeWords[] = {"struct", "class", "union", "enum"};

bool Opens(const CudaLexeme& lexeme) { return lexeme.Is("(") || lexeme.Is("[") || lexeme.Is("{"); }
bool Closes(const CudaLexeme& lexeme) { return lexeme.Is(")") || lexeme.Is("]") || lexeme.Is("}"); }

// The lexemes are views into one text, so that neighbours can be told from what a space divides.
bool Touch(const CudaLexeme& left, const CudaLexeme& right) {
  return left.text.data() + left.text.size() == right.text.data();
}

}  // namespace

bool IsKernelAttribute(std::string_view word) { return absl::c_linear_search(kKernelAttributes, word); }

std::string_view DirectiveWord(std::string_view line) {
  line.remove_prefix(1);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const auto end = std::find_if_not(line.begin(), line.end(), IsWordPart);
  return line.substr(0, static_cast<size_t>(end - line.begin()));
}

std::string_view CudaText::Text(size_t begin, size_t end) const {
  if (begin >= end) return "";
  const char* const first = all_[begin].text.data();
  return {first, static_cast<size_t>(all_[end - 1].text.data() + all_[end - 1].text.size() - first)};
}

CudaText::CudaText(std::vector<CudaLexeme> lexemes)
    : all_(std::move(lexemes)), behind_(all_.size(), kNoLexeme) {
  std::vector<size_t> open;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].kind != CudaLexemeKind::kLiteral) ++counts_[all_[i].text];
    if (Opens(all_[i])) open.push_back(i);
    if (!Closes(all_[i]) || open.empty()) continue;
    behind_[open.back()] = i + 1;
    open.pop_back();
  }
}

size_t CudaText::Count(std::string_view word) const {
  const auto found = counts_.find(word);
  return found == counts_.end() ? 0 : found->second;
}

size_t CudaText::BehindBrackets(size_t open) const { return behind_[open]; }

size_t CudaText::BehindAngles(size_t open) const {
  size_t depth = 0;
  for (size_t i = open; i < all_.size() && !IsTooLong(); ++num_steps_) {
    if (all_[i].Is(";") || all_[i].Is("{") || Closes(all_[i])) break;
    if (all_[i].Is("<")) ++depth;
    if (all_[i].Is(">") && --depth == 0) return i + 1;
    const size_t next = Opens(all_[i]) ? BehindBrackets(i) : i + 1;
    if (next == kNoLexeme) break;
    i = next;
  }
  return kNoLexeme;
}

bool CudaText::IsTriple(size_t i, std::string_view sign) const {
  return i + 2 < all_.size() && all_[i].Is(sign) && all_[i + 1].Is(sign) && all_[i + 2].Is(sign) &&
         Touch(all_[i], all_[i + 1]) && Touch(all_[i + 1], all_[i + 2]);
}

size_t CudaText::NameBehind(size_t i) const {
  while (i + 1 < all_.size()) {
    if (!all_[i + 1].Is("(")) {
      ++i;
      continue;
    }
    if (!IsKernelAttribute(all_[i].text)) return all_[i].kind == CudaLexemeKind::kWord ? i : kNoLexeme;
    const size_t behind = BehindBrackets(i + 1);
    if (behind == kNoLexeme) break;
    i = behind - 1;
  }
  return kNoLexeme;
}

size_t CudaText::OpensScope(size_t i) const {
  if (all_[i].Is("inline")) ++i;
  if (i + 2 >= all_.size()) return kNoLexeme;
  if (all_[i].Is("extern") && all_[i + 1].kind == CudaLexemeKind::kLiteral)
    return all_[i + 2].Is("{") ? i + 2 : kNoLexeme;
  if (!all_[i].Is("namespace")) return kNoLexeme;
  do ++i;
  while (i < all_.size() && (all_[i].kind == CudaLexemeKind::kWord || all_[i].Is(":")));
  return i < all_.size() && all_[i].Is("{") ? i : kNoLexeme;
}

std::optional<CudaItem> CudaText::ReadItem(size_t begin, size_t end) const {
  CudaItem item{.begin = begin, .end = kNoLexeme};
  size_t i = begin;
  while (i < end && all_[i].Is("template"))
    i = i + 1 < end && all_[i + 1].Is("<") ? BehindAngles(i + 1) : end;
  for (bool is_first = true; i < end && item.end == kNoLexeme; is_first = false) {
    const CudaLexeme& lexeme = all_[i];
    if (lexeme.kind == CudaLexemeKind::kDirective) return std::nullopt;
    if (lexeme.kind == CudaLexemeKind::kWord) {
      if (absl::c_linear_search(kTypeWords, lexeme.text) && (is_first || item.Has("typedef")))
        item.is_type = true;
      item.words.insert(lexeme.text);
    }
    if (lexeme.Is("=") && !item.Has("operator")) item.has_value = true;
    if (lexeme.Is("(") && item.parameters == kNoLexeme && i > begin && !IsAttribute(i)) item.parameters = i;
    const bool is_function = !item.is_type && !item.has_value && item.parameters != kNoLexeme;
    if (lexeme.Is("{") && is_function) item.body = i;
    i = Opens(lexeme) ? BehindBrackets(i) : i + 1;
    if (lexeme.Is(";") || item.body != kNoLexeme) item.end = i;
  }
  if (item.end > end || !HasOnlyPragmas(item)) return std::nullopt;
  return item;
}

bool CudaText::HasSign(const CudaItem& item, std::string_view signs) const {
  for (size_t i = item.begin; i < item.end; ++i) {
    if (all_[i].kind == CudaLexemeKind::kSign && signs.find(all_[i].text[0]) != signs.npos) return true;
  }
  return false;
}

bool CudaText::IsAttribute(size_t parenthesis) const {
  const std::string_view before = all_[parenthesis - 1].text;
  return IsKernelAttribute(before) || absl::c_linear_search(kOtherAttributes, before);
}

bool CudaText::HasOnlyPragmas(const CudaItem& item) const {
  for (size_t i = item.begin; i < item.end; ++i) {
    if (all_[i].kind == CudaLexemeKind::kDirective && DirectiveWord(all_[i].text) != "pragma") return false;
  }
  return true;
}

}  // namespace warpsmith
