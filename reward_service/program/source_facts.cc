#include "reward_service/program/source_facts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "reward_service/program/cpp_tokens.h"
#include "reward_service/program/cuda_tokens.h"

namespace warpsmith {
namespace {

constexpr int kNestingMax = 64;
constexpr size_t kFunctionsMax = 512;

bool Allocates(std::string_view word) {
  static constexpr std::string_view kWords[] = {"malloc", "calloc",      "aligned_alloc", "new",
                                                "vector", "make_unique", "posix_memalign"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

bool IsTranscendental(std::string_view word) {
  static const std::set<std::string_view> kNames = {
      "acos", "acosh", "asin", "asinh",  "atan",  "atan2", "atanh",  "cbrt",  "cos",   "cosh",
      "erf",  "erfc",  "exp",  "exp2",   "expm1", "hypot", "lgamma", "log",   "log10", "log1p",
      "log2", "pow",   "sin",  "sincos", "sinh",  "tan",   "tanh",   "tgamma"};
  if (kNames.count(word) != 0) return true;
  return word.size() > 1 && word.back() == 'f' && kNames.count(word.substr(0, word.size() - 1)) != 0;
}

bool IsIntegerType(std::string_view word) {
  static const std::set<std::string_view> kTypes = {
      "int", "long", "unsigned", "size_t", "ptrdiff_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "auto"};
  return kTypes.count(word) != 0;
}

// A loop that is open while its statements are read.
struct Loop {
  std::string_view variable;  // empty where it counts nothing
  bool has_loop = false;
  bool multiplies_index = false;
  std::set<std::string_view> words;
};

// A loop that stands in no other, with those inside it.
struct Nest {
  int depth = 0;
  std::set<std::string_view> words;
};

struct Function {
  std::vector<Nest> nests;
  int num_allocations = 0;
  std::set<std::string_view> words_outside;  // of any loop
  std::set<std::string_view> words;          // everything its live statements name
  // What each innermost loop that multiplies its variable into an index names.
  std::vector<std::set<std::string_view>> strided_loops;
  SourceFacts cuda;              // what is of CUDA alone
  int num_launches_outside = 0;  // of any loop
};

using Functions = std::map<std::string_view, Function>;

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
      const bool read = Statement(loop_depth + 1, live);
      LeaveLoop(live);
      return read;
    }
    if (token == "do") {
      ++position_;
      EnterLoop(loop_depth, live);
      const bool read = Statement(loop_depth + 1, live);
      LeaveLoop(live);
      return read && Expression(loop_depth, live);
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
    brackets_.clear();
    declares_integer_ = IsIntegerType(Peek() == "const" ? At(position_ + 1) : Peek());
    declares_shared_ = false;
    declares_place_ = declares_integer_ || DeclaresPointer(tokens_, position_);
    if (declares_integer_) thread_variables_.insert(ThreadVariable(tokens_, position_));
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
    declares_place_ = false;
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
      NoteCuda(token);
      if (loops_.empty()) {
        function_->words_outside.insert(token);
      } else {
        NoteInLoop(token, loops_.back());
      }
    }
    if (live) NoteLaunch();
    if (token == "[") OpenBracket();
    if (token == "]" && !brackets_.empty()) brackets_.pop_back();
    ++position_;
  }

  void OpenBracket() {
    const std::string_view array = position_ > 0 ? At(position_ - 1) : std::string_view();
    if (declares_shared_) shared_arrays_.insert(array);
    // &x[i] is an address that others walk from.
    const bool is_address = position_ >= 2 && At(position_ - 2) == "&";
    brackets_.push_back(is_address || shared_arrays_.count(array) != 0);
  }

  void NoteLaunch() {
    const std::optional<LaunchTokens> launch = LaunchAt(tokens_, position_);
    if (!launch) return;
    ++function_->cuda.num_launches;
    function_->num_launches_outside += loops_.empty();
    function_->cuda.num_one_block_launches += launch->one_block;
    function_->cuda.num_one_thread_launches += launch->one_thread;
  }

  void NoteCuda(std::string_view token) {
    declares_shared_ |= token == "__shared__";
    function_->cuda.num_synchronisations += Synchronises(token);
    function_->cuda.num_gpu_allocations += AllocatesOnGpu(token);
    const bool is_index = token == "threadIdx" && At(position_ + 2) == "x";
    if (!is_index && thread_variables_.count(token) == 0) return;
    const bool indexes = declares_place_ || (!brackets_.empty() && !brackets_.back());
    function_->cuda.strided_threads |=
        indexes && IsMultiplied(position_, is_index ? position_ + 2 : position_);
  }

  // Whether the tokens from `first` to `last` stand beside a "*" with a name.
  bool IsMultiplied(size_t first, size_t last) const {
    const bool by_next = At(last + 1) == "*" && IsIdentifier(At(last + 2));
    const bool by_previous = first >= 2 && At(first - 1) == "*" && IsIdentifier(At(first - 2));
    return by_next || by_previous;
  }

  void NoteInLoop(std::string_view token, Loop& loop) const {
    loop.words.insert(token);
    function_->nests.back().words.insert(token);
    const bool indexes = declares_integer_ || (!brackets_.empty() && !brackets_.back());
    if (token != loop.variable || !indexes) return;
    loop.multiplies_index |= IsMultiplied(position_, position_);
  }

  void EnterLoop(int loop_depth, bool live) {
    if (!live) return;
    if (loops_.empty()) function_->nests.emplace_back();
    function_->nests.back().depth = std::max(function_->nests.back().depth, loop_depth + 1);
    if (!loops_.empty()) loops_.back().has_loop = true;
    loops_.push_back({.variable = LoopVariable()});
    brackets_.clear();
    declares_integer_ = false;
  }

  void LeaveLoop(bool live) {
    if (!live) return;
    const Loop& loop = loops_.back();
    if (!loop.has_loop && loop.multiplies_index) function_->strided_loops.push_back(loop.words);
    loops_.pop_back();
  }

  // Of `for (long i = 0; ...)`, at its parenthesis: i.
  std::string_view LoopVariable() const {
    for (size_t i = position_; i < tokens_.size() && tokens_[i] != ";" && tokens_[i] != ")"; ++i) {
      if (tokens_[i] == "=") return tokens_[i - 1];
    }
    return {};
  }

  static bool IsIdentifier(std::string_view token) {
    return IsWord(token) && (token[0] < '0' || token[0] > '9');
  }

  std::string_view Peek() const { return At(position_); }

  std::string_view At(size_t position) const {
    return position < tokens_.size() ? tokens_[position] : std::string_view();
  }

  const std::vector<std::string_view>& tokens_;
  size_t position_;
  Function* function_;
  int nesting_ = 0;
  std::vector<Loop> loops_;     // the live ones around the position
  std::vector<bool> brackets_;  // the open ones of the statement: whether an address is taken
  bool declares_integer_ = false;
  bool declares_place_ = false;  // an integer or a pointer
  bool declares_shared_ = false;
  std::set<std::string_view> thread_variables_;
  std::set<std::string_view> shared_arrays_;
};

// The word before the first "(" between the last declaration's end and `brace`; empty: no function opens
// there. Launch bounds stand before a kernel's name as if they were a function.
std::string_view FunctionName(const std::vector<std::string_view>& tokens, size_t begin, size_t brace) {
  for (size_t i = begin + 1; i < brace; ++i) {
    if (tokens[i] == "(" && IsWord(tokens[i - 1]) && tokens[i - 1] != "__launch_bounds__") {
      return tokens[i - 1];
    }
  }
  return {};
}

// All functions by name, at any level of namespaces and classes. Overloads are added together.
bool ReadFunctions(const std::vector<std::string_view>& tokens, Functions* functions) {
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

// A loop that calls a function with loops of its own is no innermost one.
bool IsStrided(const Function& function, const Functions& functions) {
  const auto loops = [&](std::string_view word) {
    const auto found = functions.find(word);
    return found != functions.end() && !found->second.nests.empty();
  };
  return std::any_of(function.strided_loops.begin(), function.strided_loops.end(),
                     [&](const auto& words) { return std::none_of(words.begin(), words.end(), loops); });
}

// Depths of nests, counting the loops of functions that they call.
class NestDepths {
 public:
  explicit NestDepths(const Functions& functions) : functions_(functions) {}

  int Of(const Nest& nest) {
    int below = 0;
    for (const std::string_view word : nest.words) below = std::max(below, OfFunction(word));
    return nest.depth + below;
  }

 private:
  // 0 while it is being worked out: a function that calls itself is no deeper for it.
  int OfFunction(std::string_view name) {
    const auto function = functions_.find(name);
    if (function == functions_.end()) return 0;
    const auto [known, is_new] = depths_.try_emplace(name, 0);
    if (!is_new) return known->second;
    int deepest = 0;
    for (const Nest& nest : function->second.nests) deepest = std::max(deepest, Of(nest));
    for (const std::string_view word : function->second.words_outside)
      deepest = std::max(deepest, OfFunction(word));
    return depths_[name] = deepest;
  }

  const Functions& functions_;
  std::map<std::string_view, int> depths_;
};

// All functions that `name` reaches, itself first: by any of their words, or by those outside of loops.
std::set<std::string_view> Reached(const Functions& functions, std::string_view name,
                                   std::set<std::string_view> Function::*words) {
  std::set<std::string_view> reached = {name};
  std::vector<std::string_view> pending = {name};
  while (!pending.empty()) {
    const Function& function = functions.at(pending.back());
    pending.pop_back();
    for (const std::string_view word : function.*words) {
      if (functions.count(word) != 0 && reached.insert(word).second) pending.push_back(word);
    }
  }
  return reached;
}

// Launches count as looped until they are found outside.
void AddCuda(const SourceFacts& cuda, SourceFacts* facts) {
  facts->num_launches += cuda.num_launches;
  facts->num_looped_launches += cuda.num_launches;
  facts->num_one_block_launches += cuda.num_one_block_launches;
  facts->num_one_thread_launches += cuda.num_one_thread_launches;
  facts->num_synchronisations += cuda.num_synchronisations;
  facts->num_gpu_allocations += cuda.num_gpu_allocations;
  facts->strided_threads |= cuda.strided_threads;
}

}  // namespace

SourceFacts ReadSourceFacts(std::string_view source) {
  const std::vector<std::string_view> tokens = CppTokens(source);
  Functions functions;
  if (!ReadFunctions(tokens, &functions) || functions.count("run") == 0) return {};
  SourceFacts facts{.valid = true};
  for (const std::string_view name : Reached(functions, "run", &Function::words)) {
    const Function& function = functions.at(name);
    facts.num_allocations += function.num_allocations;
    facts.strided |= IsStrided(function, functions);
    facts.calls_libm |= std::any_of(function.words.begin(), function.words.end(), IsTranscendental);
    AddCuda(function.cuda, &facts);
  }
  std::vector<int> depths;
  NestDepths nest_depths(functions);
  for (const std::string_view name : Reached(functions, "run", &Function::words_outside)) {
    for (const Nest& nest : functions.at(name).nests) depths.push_back(nest_depths.Of(nest));
    facts.num_looped_launches -= functions.at(name).num_launches_outside;
  }
  for (const int depth : depths) facts.loop_depth_max = std::max(facts.loop_depth_max, depth);
  facts.num_passes = static_cast<int>(std::count(depths.begin(), depths.end(), facts.loop_depth_max));
  return facts;
}

}  // namespace warpsmith
