#include "reward_service/rubric/source_facts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reward_service/rubric/cpp_tokens.h"

namespace warpsmith {
namespace {

constexpr int kNestingMax = 64;
constexpr size_t kFunctionsMax = 512;

bool Allocates(std::string_view word) {
  static constexpr std::string_view kWords[] = {"malloc", "calloc",      "aligned_alloc", "new",
                                                "vector", "make_unique", "posix_memalign"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

struct Function {
  int num_loop_nests = 0;
  int loop_depth_max = 0;
  int num_allocations = 0;
  std::set<std::string_view> words;  // everything its live statements name
};

// Reads the statements of one function body by recursive descent.
class BodyReader {
 public:
  BodyReader(const std::vector<std::string_view>& tokens, size_t position, Function* function)
      : tokens_(tokens), position_(position), function_(function) {}

  // Reads the statement at the position; `live` is false in a branch that cannot run. Returns false when it
  // gives up.
  bool Statement(int loop_depth, bool live) {
    if (++nesting_ > kNestingMax) return false;
    const bool read = StatementBody(loop_depth, live);
    --nesting_;
    return read;
  }

  size_t position() const { return position_; }

 private:
  bool StatementBody(int loop_depth, bool live) {
    const std::string_view token = Peek();
    if (token == "{") return Block(loop_depth, live);
    if (token == "for" || token == "while") {
      ++position_;
      EnterLoop(loop_depth, live);
      SkipParentheses(live);
      return Statement(loop_depth + 1, live);
    }
    if (token == "do") {
      ++position_;
      EnterLoop(loop_depth, live);
      return Statement(loop_depth + 1, live) && Expression(loop_depth, live);
    }
    if (token == "if") return If(loop_depth, live);
    if (token == "switch") {
      ++position_;
      SkipParentheses(live);
      return Statement(loop_depth, live);
    }
    if (token == "case" || token == "default") {
      while (position_ < tokens_.size() && Peek() != ":") ++position_;
      ++position_;
      return Statement(loop_depth, live);
    }
    return Expression(loop_depth, live);
  }

  bool Block(int loop_depth, bool live) {
    ++position_;
    while (position_ < tokens_.size() && Peek() != "}") {
      if (!Statement(loop_depth, live)) return false;
    }
    ++position_;
    return true;
  }

  bool If(int loop_depth, bool live) {
    ++position_;
    if (Peek() == "constexpr") ++position_;
    const size_t head = position_;
    SkipParentheses(live);
    const bool never = position_ == head + 3 && (tokens_[head + 1] == "0" || tokens_[head + 1] == "false");
    if (!Statement(loop_depth, live && !never)) return false;
    if (Peek() != "else") return true;
    ++position_;
    return Statement(loop_depth, live);
  }

  // Everything up to the semicolon; a lambda's body inside is read as a block.
  bool Expression(int loop_depth, bool live) {
    while (position_ < tokens_.size() && Peek() != ";" && Peek() != "}") {
      if (Peek() == "{") {
        if (++nesting_ > kNestingMax || !Block(loop_depth, live)) return false;
        --nesting_;
      } else {
        Note(live);
      }
    }
    if (Peek() == ";") ++position_;
    return true;
  }

  void SkipParentheses(bool live) {
    if (Peek() != "(") return;
    int depth = 0;
    do {
      if (Peek() == "(") ++depth;
      if (Peek() == ")") --depth;
      Note(live);
    } while (depth > 0 && position_ < tokens_.size());
  }

  void Note(bool live) {
    const std::string_view token = Peek();
    if (live && IsWord(token)) {
      function_->words.insert(token);
      function_->num_allocations += Allocates(token);
    }
    ++position_;
  }

  void EnterLoop(int loop_depth, bool live) {
    if (!live) return;
    function_->num_loop_nests += loop_depth == 0;
    function_->loop_depth_max = std::max(function_->loop_depth_max, loop_depth + 1);
  }

  std::string_view Peek() const {
    return position_ < tokens_.size() ? tokens_[position_] : std::string_view();
  }

  const std::vector<std::string_view>& tokens_;
  size_t position_;
  Function* function_;
  int nesting_ = 0;
};

// The word before the first "(" between the last declaration's end and `brace`; empty: no function opens
// there.
std::string_view FunctionName(const std::vector<std::string_view>& tokens, size_t begin, size_t brace) {
  for (size_t i = begin + 1; i < brace; ++i) {
    if (tokens[i] == "(" && IsWord(tokens[i - 1])) return tokens[i - 1];
  }
  return {};
}

// All functions by name, at any level of namespaces and classes. Overloads are added together.
bool ReadFunctions(const std::vector<std::string_view>& tokens,
                   std::map<std::string_view, Function>* functions) {
  size_t declaration = 0;
  for (size_t i = 0; i < tokens.size();) {
    const std::string_view name =
        tokens[i] == "{" ? FunctionName(tokens, declaration, i) : std::string_view();
    if (!name.empty() && functions->size() < kFunctionsMax) {
      BodyReader reader(tokens, i, &(*functions)[name]);
      if (!reader.Statement(0, true)) return false;
      i = reader.position();
      declaration = i;
      continue;
    }
    const bool ends = tokens[i] == ";" || tokens[i] == "}" || tokens[i] == "{";
    ++i;
    if (ends) declaration = i;
  }
  return true;
}

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

SourceFacts ReadSourceFacts(std::string_view cpp_source) {
  const std::vector<std::string_view> tokens = CppTokens(cpp_source);
  std::map<std::string_view, Function> functions;
  if (!ReadFunctions(tokens, &functions) || functions.count("run") == 0) return {};
  std::set<std::string_view> reached = {"run"};
  std::vector<std::string_view> pending = {"run"};
  SourceFacts facts;
  facts.valid = true;
  while (!pending.empty()) {
    const Function& function = functions[pending.back()];
    pending.pop_back();
    facts.num_loop_nests += function.num_loop_nests;
    facts.loop_depth_max = std::max(facts.loop_depth_max, function.loop_depth_max);
    facts.num_allocations += function.num_allocations;
    for (const std::string_view word : function.words) {
      if (functions.count(word) != 0 && reached.insert(word).second) pending.push_back(word);
    }
  }
  return facts;
}

}  // namespace warpsmith
