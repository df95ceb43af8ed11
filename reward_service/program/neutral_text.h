// Program text in which nobody can write a sentence: what the LLM judge is shown of a candidate.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_NEUTRAL_TEXT_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_NEUTRAL_TEXT_H_

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace warpsmith {

// Names for the words of one prompt: known ones stay, every other becomes id_1, id_2, ... in order of
// appearance, the same for the same word. Not thread-safe.
class NeutralNames {
 public:
  using WordSet = std::set<std::string, std::less<>>;

  // `task_words` are known beside those of known_words.h: what the task's own reference names.
  explicit NeutralNames(WordSet task_words) : task_words_(std::move(task_words)) {}

  std::string NameOf(std::string_view word);

 private:
  const WordSet task_words_;
  std::map<std::string, size_t, std::less<>> numbers_;
};

// Writes tokens with spacing of its own: known words, new names, plain numbers, signs of programs and `"..."`
// for each literal are all that can come out, whatever goes in. No two of "<", ">", "|" come out adjacent but
// as an operator, so nothing reads as a chat model's control token.
class NeutralText {
 public:
  explicit NeutralText(NeutralNames* names) : names_(names) {}

  void Word(std::string_view word);
  // An operator, or one sign; dropped unless it is of ASCII's that programs use.
  void Sign(std::string_view sign);
  void Literal();
  // Another text's lines, one level deeper, between triple quotes.
  void Block(std::string_view lines);
  // Ends the line unless it is empty; the next one is indented `depth` levels.
  void EndLine(int depth);

  std::string Take();

 private:
  void Append(std::string_view text, bool tight_before, bool tight_after);

  NeutralNames* const names_;
  std::string text_;
  std::string line_;
  int depth_ = 0;
  bool tight_ = true;        // nothing, or an opening bracket, stands before
  bool after_word_ = false;  // an opening bracket belongs to what stands before
};

// Bytes of the operator that `text`, which is not empty, begins with; 1 where it begins with none.
size_t OperatorLength(std::string_view text);

// Bytes of the number that `text` begins with, suffix included; 0 where it begins with none.
size_t NumberLength(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_NEUTRAL_TEXT_H_
