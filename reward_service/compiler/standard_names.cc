#include "reward_service/compiler/standard_names.h"

#include <algorithm>

#include "reward_service/compiler/halves/cuda_lexer.h"

namespace warpsmith {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

constexpr std::string_view kHeaders[] = {
    // C, by both names.
    "assert.h", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring",
    // CUDA and DLPack.
    "cooperative_groups.h", "cublasLt.h", "cublas_v2.h", "cuda.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h",
    "cuda_runtime.h", "cuda_runtime_api.h", "cudnn.h", "device_launch_parameters.h", "dlpack/dlpack.h",
    "math_constants.h", "mma.h", "vector_types.h"};
// Of the facade, and of Torch itself.
constexpr std::string_view kFolders[] = {"ATen/", "c10/", "pybind11/", "torch/"};

std::string_view FirstWord(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsWordPart);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

void SkipSpace(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(kSpace), text->size()));
}

// A line that goes on in the next one may cut a word in two; `##` and trigraphs make words of others.
bool HidesWords(std::string_view source) {
  for (const std::string_view sign : {"##", "%:", "??"}) {
    if (source.find(sign) != std::string_view::npos) return true;
  }
  for (size_t i = source.find('\\'); i != std::string_view::npos; i = source.find('\\', i + 1)) {
    const std::string_view rest = source.substr(i + 1);
    const size_t line_end = rest.find_first_not_of(" \t\r");
    if (i > 0 && IsWordPart(source[i - 1]) && line_end < rest.size() && rest[line_end] == '\n') return true;
  }
  return false;
}

// Whether what stands behind a name gives it a list, as in `std::max<int>({a, b, c})`.
bool IsGivenList(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_of("(;"), rest.size()));
  if (rest.empty() || rest[0] == ';') return false;
  rest.remove_prefix(1);
  SkipSpace(&rest);
  return !rest.empty() && rest[0] == '{';
}

// Of what stands behind `std`. A function of one of these names for lists is a name more.
bool IsAmong(absl::Span<const std::string_view> names, std::string_view rest) {
  SkipSpace(&rest);
  if (rest.substr(0, 2) != "::") return false;
  rest.remove_prefix(2);
  SkipSpace(&rest);
  const std::string_view name = FirstWord(rest);
  rest.remove_prefix(name.size());
  return std::find(names.begin(), names.end(), name) != names.end() && !IsGivenList(rest);
}

// Of what stands behind `include`.
bool IsKnownHeader(std::string_view rest) {
  SkipSpace(&rest);
  if (rest.empty() || (rest[0] != '<' && rest[0] != '"')) return false;
  const char close = rest[0] == '<' ? '>' : '"';
  rest.remove_prefix(1);
  const size_t end = rest.find(close);
  if (end == std::string_view::npos) return false;
  const std::string_view header = rest.substr(0, end);
  if (std::find(std::begin(kHeaders), std::end(kHeaders), header) != std::end(kHeaders)) return true;
  return std::any_of(std::begin(kFolders), std::end(kFolders),
                     [&](std::string_view folder) { return header.substr(0, folder.size()) == folder; });
}

}  // namespace

bool NamesOnly(std::string_view source, absl::Span<const std::string_view> names) {
  if (HidesWords(source)) return false;
  while (!source.empty()) {
    const std::string_view word = FirstWord(source);
    source.remove_prefix(std::max<size_t>(word.size(), 1));
    if (word == "std" && !IsAmong(names, source)) return false;
    if (word == "include" && !IsKnownHeader(source)) return false;
    // include_next, __has_include and what else reads files by other words.
    if (word != "include" && (word.find("include") != std::string_view::npos || word == "import"))
      return false;
  }
  return true;
}

bool HasWord(std::string_view source, std::string_view word) {
  for (size_t at = source.find(word); at != source.npos; at = source.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsWordPart(source[at - 1]);
    if (begins && (end == source.size() || !IsWordPart(source[end]))) return true;
  }
  return false;
}

}  // namespace warpsmith
