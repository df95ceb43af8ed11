#include "reward_service/compiler/extension_source.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

// A name as C++ and Python both take it, qualified or not.
bool IsFunctionName(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
  });
}

}  // namespace

absl::StatusOr<std::string> ExtensionSource(const ExtensionArguments& arguments) {
  const auto not_empty = [](const std::string& text) { return !text.empty(); };
  if (std::any_of(arguments.cuda_sources.begin(), arguments.cuda_sources.end(), not_empty)) {
    return absl::InvalidArgumentError("CUDA sources need a service with a GPU");
  }
  std::string source = "#include <torch/extension.h>\n#line 1\n";
  for (const std::string& text : arguments.cpp_sources) absl::StrAppend(&source, text, "\n");
  if (arguments.functions.empty()) return source;
  absl::StrAppend(&source, "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n");
  for (const std::string& function : arguments.functions) {
    if (!IsFunctionName(function)) {
      return absl::InvalidArgumentError(absl::StrCat("function name \"", Escape(function, 64), "\""));
    }
    absl::StrAppend(&source, "m.def(\"", function, "\", torch::wrap_pybind_function(", function, "), \"",
                    function, "\");\n");
  }
  absl::StrAppend(&source, "}\n");
  return source;
}

}  // namespace warpsmith
