#include "core/base/kernel_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "absl/strings/ascii.h"

namespace warpsmith {
namespace {

constexpr size_t kSymbolBytesMax = 4096;

// Whether the name may grow by repetition: each reference back to a part of it can double it, each
// expansion of a parameter pack repeats what it has.
bool MayGrow(std::string_view symbol) {
  constexpr size_t kBytesMax = 1024;
  constexpr int kReferencesMax = 12;
  if (symbol.size() > kBytesMax) return true;
  int num_references = 0;
  for (size_t i = 0; i + 1 < symbol.size(); ++i) {
    if (symbol.substr(i, 2) == "Dp" || symbol.substr(i, 2) == "sp") return true;
    if (symbol[i] != 'S' && symbol[i] != 'T') continue;
    const size_t end = symbol.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    if (end != std::string_view::npos && symbol[end] == '_') ++num_references;
  }
  return num_references > kReferencesMax;
}

// "a::b<...>" of _ZN1a1bI and whatever follows; `symbol` itself where that is not its form.
std::string Identifiers(std::string_view symbol) {
  std::string name;
  std::string_view rest = symbol.substr(2);
  while (!rest.empty() && (rest[0] == 'N' || rest[0] == 'L' || rest[0] == 'K')) rest.remove_prefix(1);
  while (!rest.empty() && absl::ascii_isdigit(rest[0])) {
    size_t num_bytes = 0;
    for (; !rest.empty() && absl::ascii_isdigit(rest[0]); rest.remove_prefix(1)) {
      num_bytes = std::min(num_bytes * 10 + (rest[0] - '0'), kSymbolBytesMax);
    }
    if (num_bytes > rest.size()) return std::string(symbol);
    const std::string_view part = rest.substr(0, num_bytes);
    if (!name.empty()) name += "::";
    name += part.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : part;
    rest.remove_prefix(num_bytes);
  }
  if (name.empty()) return std::string(symbol);
  return !rest.empty() && rest[0] == 'I' ? name + "<...>" : name;
}

// Without the parameters at its end and the return type of a template.
std::string_view WithoutSignature(std::string_view name) {
  constexpr std::string_view kResult = "void ";
  if (name.starts_with(kResult)) name.remove_prefix(kResult.size());
  if (name.empty() || name.back() != ')') return name;
  int depth = 0;
  for (size_t i = name.size(); i-- > 1;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string Demangled(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return std::string(symbol);
  if (MayGrow(symbol)) return Identifiers(symbol);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(WithoutSignature(text.get())) : std::string(symbol);
}

}  // namespace

std::string KernelName(std::string_view symbol) { return Demangled(symbol).substr(0, kKernelNameBytesMax); }

}  // namespace warpsmith
