#include "reward_service/program/renamed_copy.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reward_service/program/cpp_tokens.h"

namespace warpsmith {
namespace {

bool IsName(std::string_view token) {
  static const std::set<std::string_view> kKeywords = {
      "auto",   "bool",     "break",  "case",     "char",   "const",  "constexpr", "continue", "default",
      "delete", "do",       "double", "else",     "enum",   "extern", "false",     "float",    "for",
      "goto",   "if",       "inline", "int",      "long",   "new",    "nullptr",   "operator", "public",
      "return", "short",    "signed", "sizeof",   "static", "struct", "switch",    "template", "this",
      "true",   "typename", "union",  "unsigned", "using",  "void",   "volatile",  "while"};
  return IsWord(token) && (token[0] < '0' || token[0] > '9') && kKeywords.count(token) == 0;
}

// Whether a type may end with this token; a statement's keyword cannot.
bool MayEndType(std::string_view token) {
  static const std::set<std::string_view> kTypes = {"auto",   "bool",     "char", "const", "constexpr",
                                                    "double", "float",    "int",  "long",  "short",
                                                    "signed", "unsigned", "void", "struct"};
  return IsName(token) || kTypes.count(token) != 0 || token == "*" || token == "&" || token == ">";
}

bool IsMember(const std::vector<std::string_view>& tokens, size_t i) {
  return i >= 1 && (tokens[i - 1] == "." || tokens[i - 1] == ":" ||
                    (i >= 2 && tokens[i - 1] == ">" && tokens[i - 2] == "-"));
}

std::set<std::string_view> DeclaredNames(const std::vector<std::string_view>& tokens) {
  std::set<std::string_view> names;
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    const std::string_view after = tokens[i + 1];
    const bool ends = after == "=" || after == ";" || after == "," || after == ")" || after == "(" ||
                      after == "[" || after == "{" || after == ":";
    if (ends && IsName(tokens[i]) && MayEndType(tokens[i - 1]) && !IsMember(tokens, i))
      names.insert(tokens[i]);
  }
  // By these the harness finds the program.
  names.erase("run");
  return names;
}

// Tokens, in which a declared name is the number of its first appearance.
std::vector<std::string> CanonicalTokens(std::string_view source) {
  const std::vector<std::string_view> tokens = CppTokens(source);
  const std::set<std::string_view> declared = DeclaredNames(tokens);
  std::map<std::string_view, size_t> numbers;
  std::vector<std::string> canonical;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool renamed = declared.count(tokens[i]) != 0 && !IsMember(tokens, i);
    canonical.push_back(
        renamed ? "name " + std::to_string(numbers.try_emplace(tokens[i], numbers.size()).first->second)
                : std::string(tokens[i]));
  }
  return canonical;
}

// Lines for the preprocessor but #include, without white space: a pragma may be all that an improvement is.
std::vector<std::string> Directives(std::string_view source) {
  std::vector<std::string> directives;
  for (size_t begin = 0; begin < source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    std::string line;
    for (const char c : source.substr(begin, end - begin)) {
      if (c != ' ' && c != '\t' && c != '\r') line += c;
    }
    if (!line.empty() && line[0] == '#' && line.rfind("#include", 0) != 0)
      directives.push_back(std::move(line));
    begin = end + 1;
  }
  return directives;
}

}  // namespace

bool IsRenamedCopy(std::string_view left, std::string_view right) {
  return CanonicalTokens(left) == CanonicalTokens(right) && Directives(left) == Directives(right);
}

}  // namespace warpsmith
