#include "core/tokenizer/added_tokens.h"

#include <algorithm>

#include "core/tokenizer/unicode.h"

namespace warpsmith {
namespace {

size_t SpacesAtEnd(std::string_view text) {
  size_t num_bytes = 0;
  while (const size_t length = LastSpaceLength(text.substr(0, text.size() - num_bytes))) num_bytes += length;
  return num_bytes;
}

size_t SpacesAtStart(std::string_view text) {
  size_t num_bytes = 0;
  while (const size_t length = FirstSpaceLength(text.substr(num_bytes))) num_bytes += length;
  return num_bytes;
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  return !EndsInWordCharacter(text.substr(0, begin)) && !BeginsWithWordCharacter(text.substr(end));
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  for (size_t token = 0; token < tokens_.size(); ++token) Insert(static_cast<int32_t>(token));
}

void AddedTokenMatcher::Insert(int32_t token) {
  int32_t node = 0;
  for (const char c : tokens_[token].content) {
    const auto byte = static_cast<unsigned char>(c);
    int32_t child = FindChild(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
      auto& children = nodes_[node].children;
      const std::pair<unsigned char, int32_t> entry(byte, child);
      children.insert(std::upper_bound(children.begin(), children.end(), entry), entry);
    }
    node = child;
  }
  if (node != 0) nodes_[node].token = token;  // an empty content is never found
}

int32_t AddedTokenMatcher::FindChild(int32_t node, unsigned char byte) const {
  const auto& children = nodes_[node].children;
  const auto found =
      std::lower_bound(children.begin(), children.end(), byte,
                       [](const auto& child, unsigned char wanted) { return child.first < wanted; });
  return found == children.end() || found->first != byte ? -1 : found->second;
}

int32_t AddedTokenMatcher::LongestAt(std::string_view text) const {
  int32_t longest = -1;
  int32_t node = 0;
  for (const char c : text) {
    node = FindChild(node, static_cast<unsigned char>(c));
    if (node < 0) break;
    if (nodes_[node].token >= 0) longest = nodes_[node].token;
  }
  return longest;
}

std::vector<AddedTokenPart> AddedTokenMatcher::Split(std::string_view text) const {
  std::vector<AddedTokenPart> parts;
  size_t done = 0;  // everything before belongs to a part
  for (size_t at = 0; at < text.size();) {
    const int32_t found = LongestAt(text.substr(at));
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[found];
    const size_t end = at + token.content.size();
    if (!token.single_word || StandsAlone(text, at, end)) {
      const size_t first =
          token.lstrip ? std::max(done, at - SpacesAtEnd(text.substr(0, at))) : std::max(done, at);
      const size_t last = token.rstrip ? end + SpacesAtStart(text.substr(end)) : end;
      if (first > done) parts.push_back({.text = text.substr(done, first - done)});
      parts.push_back({.text = text.substr(first, last - first), .id = token.id});
      done = last;
    }
    at = end;
  }
  if (done < text.size()) parts.push_back({.text = text.substr(done)});
  return parts;
}

}  // namespace warpsmith
