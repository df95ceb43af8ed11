// Tokens that are cut out of a text before anything else: the "added_tokens" of tokenizer.json.
#ifndef WARPSMITH_CORE_TOKENIZER_ADDED_TOKENS_H_
#define WARPSMITH_CORE_TOKENIZER_ADDED_TOKENS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warpsmith {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // part of the format, left out of decoded text on request
  bool single_word = false;  // not found inside a word
  bool lstrip = false;       // takes white space before it along
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for after normalisation
};

// A stretch of text: an added token, or text between such.
struct AddedTokenPart {
  std::string_view text;
  int32_t id = -1;  // -1: text
};

// Finds a set of tokens in text: leftmost first, the longest of those that begin there. Immutable.
class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // Cuts `text` into parts, none of them empty, in order.
  std::vector<AddedTokenPart> Split(std::string_view text) const;

 private:
  // A node of a trie over bytes; children are sorted by byte.
  struct Node {
    std::vector<std::pair<unsigned char, int32_t>> children;
    int32_t token = -1;
  };

  int32_t FindChild(int32_t node, unsigned char byte) const;
  void Insert(int32_t token);
  // Index of the longest token that `text` begins with, or -1.
  int32_t LongestAt(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_ADDED_TOKENS_H_
