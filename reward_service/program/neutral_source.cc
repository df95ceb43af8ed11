#include "reward_service/program/neutral_source.h"

#include <algorithm>
#include <vector>

#include "reward_service/program/cpp_tokens.h"
#include "reward_service/program/python_tokens.h"

namespace warpsmith {
namespace {

class CppPrinter {
 public:
  CppPrinter(std::string_view source, NeutralNames* names) : source_(source), text_(names) {}

  std::string Run() {
    const std::vector<CppLexeme> lexemes = CppLexemes(source_);
    for (size_t i = 0; i < lexemes.size(); i = Next(lexemes, i)) {
      const bool closed = just_closed_;
      just_closed_ = false;
      if (closed && lexemes[i].text != ";" && lexemes[i].text != "," && lexemes[i].text != ")") EndLine();
      Print(lexemes[i]);
    }
    return text_.Take();
  }

 private:
  // Index of the first lexeme that lies behind what Print took.
  size_t Next(const std::vector<CppLexeme>& lexemes, size_t index) const {
    const char* const end = lexemes[index].text.data() + taken_;
    for (++index; index < lexemes.size() && lexemes[index].text.data() < end; ++index) {
    }
    return index;
  }

  void Print(const CppLexeme& lexeme) {
    const std::string_view rest = source_.substr(static_cast<size_t>(lexeme.text.data() - source_.data()));
    taken_ = lexeme.text.size();
    switch (lexeme.kind) {
      case CppKind::kDirectiveBegin:
        EndLine();
        text_.Sign("#");
        break;
      case CppKind::kDirectiveEnd:
        EndLine();
        break;
      case CppKind::kString:
      case CppKind::kCharacter:
        text_.Literal();
        break;
      case CppKind::kWord:
      case CppKind::kSign:
        if (const size_t number = NumberLength(rest); number > 0) {
          taken_ = number;
          text_.Word(rest.substr(0, number));
        } else if (lexeme.kind == CppKind::kWord) {
          text_.Word(lexeme.text);
        } else {
          Sign(rest);
        }
    }
  }

  void Sign(std::string_view rest) {
    taken_ = OperatorLength(rest);
    const std::string_view sign = rest.substr(0, taken_);
    if (sign == "(") ++num_open_;
    if (sign == ")") num_open_ = std::max(0, num_open_ - 1);
    if (sign == "}") Close();
    text_.Sign(sign);
    if (sign == "{") Open();
    if (sign == ";" && num_open_ == 0) EndLine();
  }

  void Open() {
    outer_.push_back(num_open_);
    num_open_ = 0;
    EndLine();
  }

  void Close() {
    if (outer_.empty()) return;
    num_open_ = outer_.back();
    outer_.pop_back();
    EndLine();
    just_closed_ = true;
  }

  void EndLine() { text_.EndLine(static_cast<int>(outer_.size())); }

  const std::string_view source_;
  NeutralText text_;
  size_t taken_ = 0;
  std::vector<int> outer_;  // open parentheses around each open brace
  int num_open_ = 0;
  bool just_closed_ = false;
};

bool LooksLikeCpp(std::string_view text) {
  return text.find(';') != std::string_view::npos && text.find('(') != std::string_view::npos;
}

bool IsLoneString(const std::vector<PythonLexeme>& lexemes, size_t index) {
  const bool begins = index == 0 || lexemes[index - 1].kind == PythonKind::kLine;
  const bool ends = index + 1 == lexemes.size() || lexemes[index + 1].kind == PythonKind::kLine;
  return lexemes[index].kind == PythonKind::kString && begins && ends;
}

}  // namespace

std::string NeutralCpp(std::string_view source, NeutralNames* names) {
  return CppPrinter(source, names).Run();
}

std::string NeutralPython(std::string_view source, NeutralNames* names) {
  NeutralText text(names);
  const std::vector<PythonLexeme> lexemes = PythonLexemes(source);
  for (size_t i = 0; i < lexemes.size(); ++i) {
    const PythonLexeme& lexeme = lexemes[i];
    if (lexeme.kind == PythonKind::kLine) {
      text.EndLine(lexeme.depth);
    } else if (lexeme.kind == PythonKind::kWord) {
      text.Word(lexeme.text);
    } else if (lexeme.kind == PythonKind::kSign) {
      text.Sign(lexeme.text);
    } else if (LooksLikeCpp(lexeme.text) && !IsLoneString(lexemes, i)) {
      text.Block(NeutralCpp(lexeme.text, names));
    } else if (!IsLoneString(lexemes, i)) {
      text.Literal();
    }
  }
  return text.Take();
}

NeutralNames::WordSet PythonWords(std::string_view source) {
  NeutralNames::WordSet words;
  const auto beyond_ascii = [](char c) { return (c & 0x80) != 0; };
  for (PythonLexeme& lexeme : PythonLexemes(source)) {
    if (lexeme.kind != PythonKind::kWord) continue;
    if (std::any_of(lexeme.text.begin(), lexeme.text.end(), beyond_ascii)) continue;
    words.insert(std::move(lexeme.text));
  }
  return words;
}

}  // namespace warpsmith
