#include "reward_service/compiler/halves/cuda_halves.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "reward_service/compiler/halves/cuda_lexer.h"
#include "reward_service/compiler/halves/cuda_text.h"
#include "reward_service/compiler/halves/half_headers.h"

namespace warpsmith {
namespace {

// Where they stand in a macro, the program has functions that it does not show.
constexpr std::string_view kSpaces[] = {"__global__",  "__device__", "__host__",         "__constant__",
                                        "__managed__", "__shared__", "__grid_constant__"};
constexpr int kScopeDepthMax = 8;
// Words of template arguments that mean the same wherever they stand; others may be local names, or macros that change.
constexpr std::string_view kWordsOfArguments[] = {"bool", "char",  "double", "false",    "float", "int",
                                                  "long", "short", "signed", "unsigned", "true",  "void"};
// Names are arguments of a command, which have an end.
constexpr size_t kNameBytesMax = 1024;
constexpr size_t kNamesMax = 256;

// "cuda.h" of `#include <cuda.h>`; empty for others, `#include NAME  // <cuda.h>` say.
std::string_view HeaderOf(std::string_view line) {
  constexpr std::string_view kInclude = "include", kBlanks = " \t\r";
  const size_t word = line.find(kInclude);
  if (word == std::string_view::npos) return "";
  const size_t begin = line.find_first_not_of(kBlanks, word + kInclude.size());
  if (begin == std::string_view::npos || (line[begin] != '<' && line[begin] != '"')) return "";
  const size_t end = line.find(line[begin] == '<' ? '>' : '"', begin + 1);
  if (end == std::string_view::npos) return "";
  const size_t rest = line.find_first_not_of(kBlanks, end + 1);
  if (rest != std::string_view::npos && line.substr(rest, 2) != "//") return "";
  return line.substr(begin + 1, end - begin - 1);
}

class Splitter {
 public:
  explicit Splitter(std::vector<CudaLexeme> lexemes) : text_(std::move(lexemes)) {}

  std::optional<CudaHalves> Split() {
    FindKernels();
    Scope(0, text_.size(), {});
    if (!is_plain_ || text_.IsTooLong() || halves_.kernels.empty() || HasOverloads()) return std::nullopt;
    return std::move(halves_);
  }

 private:
  struct Surroundings {
    int depth = 0;
    bool is_named = false;  // a namespace with a name is around
  };

  void Refuse() { is_plain_ = false; }

  // Whether a function of the host has the name of one of the device's, which NVRTC would take for it.
  bool HasOverloads() const {
    return std::any_of(host_functions_.begin(), host_functions_.end(),
                       [this](std::string_view name) { return device_functions_.count(name) > 0; });
  }

  // By name, before anything is moved: what uses one may stand anywhere behind it.
  void FindKernels() {
    for (size_t i = 0; i < text_.size(); ++i) {
      if (!text_[i].Is("__global__")) continue;
      const size_t name = text_.NameBehind(i);
      if (name == kNoLexeme || !kernels_.insert(text_[name].text).second) return Refuse();
    }
  }

  // Declarations from `begin` to `end`, one after the other.
  void Scope(size_t begin, size_t end, Surroundings around) {
    for (size_t i = begin; i < end && is_plain_;) {
      if (text_[i].kind == CudaLexemeKind::kDirective) {
        Directive(text_[i++].text);
      } else if (const size_t open = text_.OpensScope(i); open != kNoLexeme) {
        i = InnerScope(i, open, around);
      } else {
        const std::optional<CudaItem> item = text_.ReadItem(i, end);
        if (!item) return Refuse();
        Sort(*item, around);
        i = item->end;
      }
    }
  }

  size_t InnerScope(size_t begin, size_t open, Surroundings around) {
    const size_t end = text_.BehindBrackets(open);
    if (end == kNoLexeme || ++around.depth > kScopeDepthMax) {
      Refuse();
      return text_.size();
    }
    around.is_named |= !text_[begin].Is("extern") && open != begin + 1;
    ForBoth(text_.Text(begin, open + 1));
    Scope(open + 1, end - 1, around);
    ForBoth("}");
    return end;
  }

  void ForBoth(std::string_view text) {
    ForDevice(text);
    ForHost(text);
  }
  void ForDevice(std::string_view text) { absl::StrAppend(&halves_.device, std::string(text), "\n"); }
  void ForHost(std::string_view text) { absl::StrAppend(&halves_.host, std::string(text), "\n"); }

  void Directive(std::string_view line) {
    const std::string_view word = DirectiveWord(line);
    if (word == "include") return Include(line);
    if (word == "define") return Define(line);
    if (word == "pragma") return ForBoth(line);
    Refuse();
  }

  void Include(std::string_view line) {
    const std::optional<HalfHeader> header = FindHalfHeader(HeaderOf(line));
    if (!header) return Refuse();
    if (!header->device_line.empty()) ForDevice(header->device_line);
    if (header->is_hosts) ForHost(line);
    if (header->is_devices) ForDevice(line);
  }

  // A macro may have neither functions of its own nor launches, for these would not be seen.
  void Define(std::string_view line) {
    const auto lexemes = LexCuda(line.substr(line.find("define") + 6));
    if (!lexemes || line.find("<<<") != line.npos || line.find("##") != line.npos) return Refuse();
    for (const CudaLexeme& lexeme : *lexemes) {
      if (absl::c_linear_search(kSpaces, lexeme.text) || kernels_.count(lexeme.text) > 0) return Refuse();
    }
    ForBoth(line);
  }

  void Sort(const CudaItem& item, Surroundings around) {
    const std::string_view text = text_.Text(item.begin, item.end);
    if (item.Has("__constant__") || item.Has("__managed__") || item.Has("__shared__")) return Refuse();
    if (item.Has("__global__")) return around.is_named ? Refuse() : Kernel(item);
    if (item.Has("using") && item.Has("nvcuda")) return ForDevice(text);
    const bool is_for_names = item.Has("using") || item.Has("typedef") || item.Has("namespace");
    if (item.is_type || is_for_names || item.Has("static_assert"))
      return UsesKernels(item, item.begin) ? Refuse() : ForBoth(text);
    if (item.Has("__device__")) return DeviceFunction(item);
    const bool is_constant = item.Has("constexpr") || (item.body == kNoLexeme && item.Has("const"));
    if (item.parameters != kNoLexeme) host_functions_.insert(text_.NameOf(item));
    if (!is_constant) return Host(item.begin, item.end);
    // NVRTC lets kernels read arrays and structures that nvcc leaves to the host.
    const bool has_parts = item.body == kNoLexeme && text_.HasSign(item, "[{");
    has_parts || UsesKernels(item, item.begin) ? Refuse() : ForBoth(text);
  }

  void DeviceFunction(const CudaItem& item) {
    if (item.body == kNoLexeme || UsesKernels(item, item.begin) || IsUnusedTemplate(item)) return Refuse();
    device_functions_.insert(text_.NameOf(item));
    const std::string_view text = text_.Text(item.begin, item.end);
    item.Has("__host__") ? ForBoth(text) : ForDevice(text);
  }

  // NVRTC does not look at a template that is never used, and nvcc does.
  bool IsUnusedTemplate(const CudaItem& item) const {
    return text_[item.begin].Is("template") && text_.Count(text_.NameOf(item)) < 2;
  }

  bool UsesKernels(const CudaItem& item, size_t from) const {
    for (size_t i = from; i < item.end; ++i) {
      if (text_.IsTriple(i, "<") || kernels_.count(text_[i].text) > 0) return true;
    }
    return false;
  }

  void Kernel(const CudaItem& item) {
    if (item.body == kNoLexeme || UsesKernels(item, item.body) || IsUnusedTemplate(item)) return Refuse();
    ForDevice(text_.Text(item.begin, item.end));
    std::string stub;
    for (size_t i = item.begin; i < item.body; ++i) {
      if (!IsKernelAttribute(text_[i].text)) {
        absl::StrAppend(&stub, std::string(text_[i].text), " ");
      } else if (text_[i + 1].Is("(")) {
        i = text_.BehindBrackets(i + 1) - 1;
      }
    }
    ForHost(absl::StrCat(stub, "{ WARPSMITH_STUB }"));
  }

  // With launches as calls.
  void Host(size_t begin, size_t end) {
    std::string text;
    size_t done = begin;  // what is in `text`
    for (size_t i = begin; i < end; ++i) {
      if (text_.IsTriple(i, "<")) return Refuse();  // of a pointer to a kernel, say
      if (text_[i].kind != CudaLexemeKind::kWord || kernels_.count(text_[i].text) == 0) continue;
      if (i > begin && (text_[i - 1].Is(":") || text_[i - 1].Is(".") || text_[i - 1].Is(">")))
        return Refuse();
      const bool has_arguments = text_[i + 1].Is("<") && !text_.IsTriple(i + 1, "<");
      const size_t behind = has_arguments ? text_.BehindAngles(i + 1) : i + 1;
      if (behind >= end || text_[behind].Is("(")) return Refuse();  // or a call that is no launch
      if (has_arguments && !MeansOneThing(i + 1, behind)) return Refuse();
      const std::string name(text_.Text(i, behind));
      if (name.size() > kNameBytesMax || halves_.kernels.size() == kNamesMax) return Refuse();
      if (!absl::c_linear_search(halves_.kernels, name)) halves_.kernels.push_back(name);
      if (text_.IsTriple(behind, "<")) {
        const size_t close = ConfigurationEnd(behind + 3);
        if (close >= end) return Refuse();
        absl::StrAppend(&text, std::string(text_.Text(done, i)), " ::warpsmith::Launch(", name, ", ",
                        std::string(text_.Text(behind + 3, close)), ") ");
        done = close + 3;
        i = done - 1;
      } else {
        i = behind - 1;
      }
    }
    ForHost(absl::StrCat(text, std::string(text_.Text(done, end))));
  }

  // Template arguments, which are looked up again at the end of the file.
  bool MeansOneThing(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      const CudaLexeme& lexeme = text_[i];
      const bool is_number = lexeme.text.front() >= '0' && lexeme.text.front() <= '9';
      if (lexeme.kind == CudaLexemeKind::kSign) continue;
      if (lexeme.kind != CudaLexemeKind::kWord ||
          !(is_number || absl::c_linear_search(kWordsOfArguments, lexeme.text)))
        return false;
    }
    return true;
  }

  // The ">>>" that ends the launch's configuration, which begins at `i`, before the arguments.
  size_t ConfigurationEnd(size_t i) const {
    while (i + 3 < text_.size()) {
      if (text_.IsTriple(i, ">")) return text_[i + 3].Is("(") ? i : kNoLexeme;
      if (kernels_.count(text_[i].text) > 0 || text_[i].Is(";") || text_[i].Is("}")) break;
      const bool opens = text_[i].Is("(") || text_[i].Is("[") || text_[i].Is("{");
      const size_t next = opens ? text_.BehindBrackets(i) : i + 1;
      if (next == kNoLexeme) break;
      i = next;
    }
    return kNoLexeme;
  }

  const CudaText text_;
  std::set<std::string_view> kernels_;
  std::set<std::string_view> host_functions_;
  std::set<std::string_view> device_functions_;
  CudaHalves halves_;
  bool is_plain_ = true;
};

}  // namespace

std::optional<CudaHalves> SplitCuda(std::string_view source) {
  std::optional<std::vector<CudaLexeme>> lexemes = LexCuda(source);
  if (!lexemes) return std::nullopt;
  return Splitter(*std::move(lexemes)).Split();
}

}  // namespace warpsmith
