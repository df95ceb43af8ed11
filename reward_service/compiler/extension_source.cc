#include "reward_service/compiler/extension_source.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "reward_service/compiler/diagnostics.h"

namespace warpsmith {
namespace {

// A name as C++ and Python both take it, qualified or not.
bool IsFunctionName(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
  });
}

std::string CudaSource(const std::vector<std::string>& sources) {
  const bool any =
      std::any_of(sources.begin(), sources.end(), [](const auto& text) { return !text.empty(); });
  if (!any) return "";
  std::string source =
      absl::StrCat("#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n", "#line 1 \"",
                   std::string(kCudaHalf), "\"\n");
  for (const std::string& text : sources) absl::StrAppend(&source, text, "\n");
  return source;
}

}  // namespace

absl::StatusOr<ExtensionSources> SourcesOf(const ExtensionArguments& arguments) {
  ExtensionSources sources{.cpp = "#include <torch/extension.h>\n#line 1\n",
                           .cuda = CudaSource(arguments.cuda_sources)};
  for (const std::string& text : arguments.cpp_sources) absl::StrAppend(&sources.cpp, text, "\n");
  if (arguments.functions.empty()) return sources;
  absl::StrAppend(&sources.cpp, "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n");
  for (const std::string& function : arguments.functions) {
    if (!IsFunctionName(function)) {
      return absl::InvalidArgumentError(absl::StrCat("function name \"", Escape(function, 64), "\""));
    }
    absl::StrAppend(&sources.cpp, "m.def(\"", function, "\", torch::wrap_pybind_function(", function, "), \"",
                    function, "\");\n");
  }
  absl::StrAppend(&sources.cpp, "}\n");
  return sources;
}

}  // namespace warpsmith
