#include "reward_service/compiler/cuda_options.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/compile_options.h"

namespace warpsmith {
namespace {

constexpr size_t kWordsMax = 64;
constexpr size_t kDigitsMax = 3;

constexpr char kInWords[] =
    "allowed are -O0 to -O3, -g, -lineinfo, -std=c++14 to c++20, --use_fast_math, --ftz=, --fmad=, "
    "--prec-div=, --prec-sqrt=, -maxrregcount=N, --expt-relaxed-constexpr, --extended-lambda, "
    "--extra-device-vectorization, --default-stream=, -D NAME=VALUE and -U NAME with plain values, -Xptxas "
    "of -O, -dlcm= and -dscm=, -Xcompiler of the options that extra_cflags allows";

bool IsBoolean(std::string_view value) { return value == "true" || value == "false"; }

bool IsNumber(std::string_view value) {
  return !value.empty() && value.size() <= kDigitsMax && std::all_of(value.begin(), value.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c));
  });
}

bool IsStandard(std::string_view value) { return value == "c++14" || value == "c++17" || value == "c++20"; }

bool IsStream(std::string_view value) { return value == "legacy" || value == "per-thread"; }

bool IsAnything(std::string_view) { return true; }

enum class Meaning {
  kPassedOn,
  kLeftOut,
  kForHost,   // a list for the host's compiler
  kForPtxas,  // a list for the assembler
};

struct Option {
  std::string_view name;  // behind one or two dashes
  Meaning meaning;
  bool (*is_value)(std::string_view);  // null: it takes none
};

constexpr Option kOptions[] = {{"O0", Meaning::kPassedOn, nullptr},
                               {"O1", Meaning::kPassedOn, nullptr},
                               {"O2", Meaning::kPassedOn, nullptr},
                               {"O3", Meaning::kPassedOn, nullptr},
                               {"g", Meaning::kPassedOn, nullptr},
                               {"lineinfo", Meaning::kPassedOn, nullptr},
                               {"generate-line-info", Meaning::kPassedOn, nullptr},
                               {"use_fast_math", Meaning::kPassedOn, nullptr},
                               {"expt-relaxed-constexpr", Meaning::kPassedOn, nullptr},
                               {"expt-extended-lambda", Meaning::kPassedOn, nullptr},
                               {"extended-lambda", Meaning::kPassedOn, nullptr},
                               {"extra-device-vectorization", Meaning::kPassedOn, nullptr},
                               {"std", Meaning::kPassedOn, IsStandard},
                               {"ftz", Meaning::kPassedOn, IsBoolean},
                               {"fmad", Meaning::kPassedOn, IsBoolean},
                               {"prec-div", Meaning::kPassedOn, IsBoolean},
                               {"prec-sqrt", Meaning::kPassedOn, IsBoolean},
                               {"maxrregcount", Meaning::kPassedOn, IsNumber},
                               {"default-stream", Meaning::kPassedOn, IsStream},
                               {"Xcompiler", Meaning::kForHost, IsAnything},
                               {"compiler-options", Meaning::kForHost, IsAnything},
                               {"Xptxas", Meaning::kForPtxas, IsAnything},
                               {"ptxas-options", Meaning::kForPtxas, IsAnything},
                               // The service chooses these.
                               {"arch", Meaning::kLeftOut, IsAnything},
                               {"gpu-architecture", Meaning::kLeftOut, IsAnything},
                               {"gencode", Meaning::kLeftOut, IsAnything},
                               {"generate-code", Meaning::kLeftOut, IsAnything},
                               {"code", Meaning::kLeftOut, IsAnything},
                               {"gpu-code", Meaning::kLeftOut, IsAnything},
                               {"t", Meaning::kLeftOut, IsNumber},
                               {"threads", Meaning::kLeftOut, IsNumber},
                               {"split-compile", Meaning::kLeftOut, IsNumber},
                               // Of messages that nobody reads.
                               {"w", Meaning::kLeftOut, nullptr},
                               {"res-usage", Meaning::kLeftOut, nullptr},
                               {"resource-usage", Meaning::kLeftOut, nullptr},
                               {"diag-suppress", Meaning::kLeftOut, IsAnything},
                               {"Xcudafe", Meaning::kLeftOut, IsAnything},
                               // What is linked anyway.
                               {"lcudart", Meaning::kLeftOut, nullptr},
                               {"lcuda", Meaning::kLeftOut, nullptr},
                               // Of the link, which is not nvcc's.
                               {"lcublas", Meaning::kLeftOut, nullptr},
                               {"lcublasLt", Meaning::kLeftOut, nullptr},
                               {"lcudnn", Meaning::kLeftOut, nullptr}};

constexpr std::string_view kPtxasOptions[] = {
    // Effort.
    "-O0", "-O1", "-O2", "-O3", "--allow-expensive-optimizations=true",
    "--allow-expensive-optimizations=false",
    // Caches.
    "-dlcm=ca", "-dlcm=cg", "-dlcm=cv", "-dlcm=cs", "-dscm=wb", "-dscm=cg", "-dscm=cs", "-dscm=wt"};

// Of messages alone.
constexpr std::string_view kPtxasMeaningless[] = {
    "-v", "--verbose", "-w", "--warn-on-spills", "-warn-spills", "--warn-on-local-memory-usage"};

absl::Status NotAllowed(std::string_view option) {
  return absl::InvalidArgumentError(
      absl::StrCat("nvcc option \"", Escape(option, 64), "\" is not allowed; ", kInWords));
}

const Option* Find(std::string_view name) {
  const auto found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                  [&](const Option& option) { return option.name == name; });
  return found == std::end(kOptions) ? nullptr : found;
}

// Without the quotes that a shell would take away.
std::string_view Unquoted(std::string_view value) {
  if (value.size() >= 2 && (value[0] == '\'' || value[0] == '"') && value.back() == value[0]) {
    return value.substr(1, value.size() - 2);
  }
  return value;
}

std::vector<std::string> ListOf(std::string_view value) {
  return absl::StrSplit(absl::string_view(value.data(), value.size()), ',', absl::SkipEmpty());
}

absl::Status AddHostOptions(std::string_view value, std::vector<std::string>* to) {
  ASSIGN_OR_RETURN(const std::vector<std::string> options, AllowedOptions(ListOf(value)));
  for (const std::string& option : options) to->insert(to->end(), {"-Xcompiler", option});
  return absl::OkStatus();
}

absl::Status AddPtxasOptions(std::string_view value, std::vector<std::string>* to) {
  for (const std::string& option : ListOf(value)) {
    if (absl::c_linear_search(kPtxasMeaningless, option)) continue;
    if (!absl::c_linear_search(kPtxasOptions, option)) return NotAllowed(option);
    to->insert(to->end(), {"-Xptxas", option});
  }
  return absl::OkStatus();
}

absl::Status Add(const Option& option, std::string_view value, std::vector<std::string>* to) {
  if (option.is_value != nullptr && !option.is_value(value)) {
    return NotAllowed(absl::StrCat(std::string(option.name), "=", std::string(value)));
  }
  switch (option.meaning) {
    case Meaning::kLeftOut:
      return absl::OkStatus();
    case Meaning::kForHost:
      return AddHostOptions(value, to);
    case Meaning::kForPtxas:
      return AddPtxasOptions(value, to);
    case Meaning::kPassedOn:
      break;
  }
  // nvcc knows all of these with one dash.
  to->push_back(
      absl::StrCat("-", std::string(option.name), option.is_value == nullptr ? "" : "=", std::string(value)));
  return absl::OkStatus();
}

// -D and -U, whose value stands behind them or in the next word.
bool IsMacro(std::string_view word) {
  return word.size() >= 2 && word[0] == '-' && (word[1] == 'D' || word[1] == 'U');
}

}  // namespace

absl::StatusOr<std::vector<std::string>> AllowedCudaOptions(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
      words.emplace_back(word);
    }
  }
  if (words.size() > kWordsMax) {
    return absl::InvalidArgumentError(absl::StrCat(words.size(), " nvcc options, at most ", kWordsMax));
  }
  std::vector<std::string> options;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (IsMacro(word)) {
      std::vector<std::string> macro = {words[i]};
      if (word.size() == 2 && i + 1 < words.size()) macro.push_back(words[++i]);
      ASSIGN_OR_RETURN(const std::vector<std::string> passed, AllowedOptions(macro));
      options.insert(options.end(), passed.begin(), passed.end());
      continue;
    }
    if (word.empty() || word[0] != '-') return NotAllowed(word);
    word.remove_prefix(word.substr(0, 2) == "--" ? 2 : 1);
    const size_t equals = word.find('=');
    const Option* const option = Find(word.substr(0, equals));
    const bool has_value = equals != std::string_view::npos;
    if (option == nullptr || (has_value && option->is_value == nullptr)) return NotAllowed(words[i]);
    std::string_view value;
    if (has_value) value = word.substr(equals + 1);
    if (!has_value && option->is_value != nullptr) {
      if (i + 1 == words.size()) return NotAllowed(words[i]);
      value = words[++i];
    }
    RETURN_IF_ERROR(Add(*option, Unquoted(value), &options));
  }
  return options;
}

}  // namespace warpsmith
