#include "reward_service/compiler/compile_options.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr size_t kOptionsMax = 64;
constexpr size_t kValueBytesMax = 64;

constexpr char kInWords[] =
    "allowed are -O0 to -O3, -Ofast, -g, -std=c++14 to c++23, -march=, -mtune= and -m of vector units, "
    "-ffast-math and its parts, -fopenmp, -pthread, -f of loops, vectors, inlining and code generation, -W, "
    "-D NAME=VALUE and -U NAME with plain values, -lm, -lgomp, -lpthread, -ldl, -lrt, -latomic";

constexpr std::string_view kAllowed[] = {
    "-O", "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-Ofast", "-g", "-g0", "-g1", "-g2", "-pthread",
    // The language.
    "-std=c++14", "-std=c++17", "-std=c++20", "-std=c++2a", "-std=c++23", "-std=c++2b", "-std=gnu++14",
    "-std=gnu++17", "-std=gnu++20", "-std=gnu++2a", "-std=gnu++23", "-fopenmp", "-fopenmp-simd",
    "-fpermissive", "-fexceptions", "-fno-exceptions", "-frtti", "-fno-rtti", "-fstrict-aliasing",
    "-fno-strict-aliasing", "-fwrapv", "-fno-builtin",
    // Arithmetic.
    "-ffast-math", "-fno-fast-math", "-funsafe-math-optimizations", "-fmath-errno", "-fno-math-errno",
    "-ffinite-math-only", "-fno-finite-math-only", "-fsigned-zeros", "-fno-signed-zeros", "-ftrapping-math",
    "-fno-trapping-math", "-fassociative-math", "-fno-associative-math", "-freciprocal-math",
    "-fno-reciprocal-math", "-frounding-math", "-fno-rounding-math", "-fsignaling-nans",
    "-fno-signaling-nans", "-fcx-limited-range", "-fsingle-precision-constant", "-fexcess-precision=fast",
    "-ffp-contract=fast", "-ffp-contract=on", "-ffp-contract=off",
    // Loops and vectors.
    "-funroll-loops", "-funroll-all-loops", "-fno-unroll-loops", "-fpeel-loops", "-funswitch-loops",
    "-fsplit-loops", "-ftree-vectorize", "-fno-tree-vectorize", "-ftree-loop-vectorize",
    "-ftree-slp-vectorize", "-fvect-cost-model=unlimited", "-fvect-cost-model=dynamic",
    "-fvect-cost-model=cheap", "-fvect-cost-model=very-cheap", "-fsimd-cost-model=unlimited",
    "-fsimd-cost-model=dynamic", "-fprefetch-loop-arrays", "-fno-prefetch-loop-arrays", "-floop-interchange",
    "-floop-nest-optimize", "-floop-unroll-and-jam", "-ftree-loop-distribution", "-ftree-loop-im", "-fivopts",
    "-fmodulo-sched",
    // Inlining and code generation.
    "-finline", "-fno-inline", "-finline-functions", "-fno-inline-functions", "-fomit-frame-pointer",
    "-fno-omit-frame-pointer", "-fipa-pta", "-fgcse-las", "-ftracer", "-fno-plt", "-fvisibility=hidden",
    "-fvisibility=default", "-fvisibility-inlines-hidden", "-ffunction-sections", "-fdata-sections",
    "-fno-semantic-interposition", "-fstack-protector", "-fno-stack-protector", "-falign-functions=32",
    "-falign-loops=32", "-falign-functions=64", "-falign-loops=64", "-fno-asynchronous-unwind-tables",
    // Libraries that every jail has.
    "-lm", "-lgomp", "-lpthread", "-ldl", "-lrt", "-latomic", "-lstdc++", "-lc", "-lgcc", "-lgcc_s",
    // CUDA's, by name alone. Whether a jail lets them work is not the compiler's to say.
    "-lcuda", "-lcudart", "-lcublas", "-lcublasLt", "-lcudnn", "-lc10_cuda", "-ltorch_cuda"};

// After "-m" or "-mno-".
constexpr std::string_view kUnits[] = {"64",         "sse",          "sse2",        "sse3",
                                       "ssse3",      "sse4",         "sse4.1",      "sse4.2",
                                       "avx",        "avx2",         "fma",         "f16c",
                                       "bmi",        "bmi2",         "lzcnt",       "popcnt",
                                       "aes",        "pclmul",       "vzeroupper",  "avx512f",
                                       "avx512cd",   "avx512bw",     "avx512dq",    "avx512vl",
                                       "avx512ifma", "avx512vbmi",   "avx512vbmi2", "avx512vnni",
                                       "avx512bf16", "avx512bitalg", "avx512fp16",  "avx512vpopcntdq",
                                       "avxvnni",    "amx-tile",     "amx-int8",    "amx-bf16"};

// Set already, or without a meaning for one file that is compiled without warnings.
constexpr std::string_view kMeaningless[] = {
    "-fPIC", "-fpic", "-pipe", "-shared", "-w", "-s", "-rdynamic", "-pedantic", "-flto", "-flto=auto",
    "-fuse-linker-plugin", "-fno-lto", "-fdiagnostics-color=always", "-D_GLIBCXX_USE_CXX11_ABI=1",
    // What a tier links anyway.
    "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"};

bool IsPlain(std::string_view value, std::string_view more) {
  return value.size() <= kValueBytesMax && std::all_of(value.begin(), value.end(), [&](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || more.find(c) != std::string_view::npos;
         });
}

bool IsMacroName(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && IsPlain(name, "_");
}

// "NAME" or "NAME=VALUE".
bool IsDefinition(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return IsMacroName(text);
  return IsMacroName(text.substr(0, equals)) && IsPlain(text.substr(equals + 1), "_.+-");
}

// Processors and vector units.
bool IsMachine(std::string_view option) {
  for (const std::string_view prefix : {"-march=", "-mtune="}) {
    if (option.starts_with(prefix)) {
      return option.size() > prefix.size() && IsPlain(option.substr(prefix.size()), "-");
    }
  }
  static constexpr std::string_view kOthers[] = {"-mprefer-vector-width=128", "-mprefer-vector-width=256",
                                                 "-mprefer-vector-width=512", "-mfpmath=sse", "-mrecip"};
  if (absl::c_linear_search(kOthers, option)) return true;
  if (!option.starts_with("-m")) return false;
  option.remove_prefix(option.starts_with("-mno-") ? 5 : 2);
  return absl::c_linear_search(kUnits, option);
}

bool IsWarning(std::string_view option) {
  return option.starts_with("-W") && IsPlain(option.substr(2), "-+=");
}

bool IsAllowed(std::string_view option) {
  if (option.starts_with("-D")) return IsDefinition(option.substr(2));
  if (option.starts_with("-U")) return IsMacroName(option.substr(2));
  return absl::c_linear_search(kAllowed, option) || IsMachine(option);
}

// Words as the shell of load_inline would part them; "-D NAME" is one.
std::vector<std::string> Words(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
      if (!words.empty() && (words.back() == "-D" || words.back() == "-U")) {
        words.back().append(word.data(), word.size());
      } else {
        words.emplace_back(word);
      }
    }
  }
  return words;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> AllowedOptions(const std::vector<std::string>& texts) {
  const std::vector<std::string> words = Words(texts);
  if (words.size() > kOptionsMax) {
    return absl::InvalidArgumentError(absl::StrCat(words.size(), " compiler options, at most ", kOptionsMax));
  }
  std::vector<std::string> options;
  for (const std::string& word : words) {
    if (absl::c_linear_search(kMeaningless, word) || IsWarning(word)) continue;
    if (!IsAllowed(word)) {
      return absl::InvalidArgumentError(
          absl::StrCat("compiler option \"", Escape(word, 64), "\" is not allowed; ", kInWords));
    }
    options.push_back(word);
  }
  return options;
}

std::optional<std::vector<std::string>> HeaderOptions(const std::vector<std::string>& options) {
  static constexpr std::string_view kLevels[] = {"-O2", "-O3", "-Ofast"};
  static constexpr std::string_view kOthers[] = {"-ffast-math", "-fopenmp", "-march=native", "-pthread"};
  std::string level;
  std::vector<std::string> others;
  for (const std::string& option : options) {
    if (absl::c_linear_search(kLevels, option)) {
      level = option;  // the last one holds
    } else if (absl::c_linear_search(kOthers, option)) {
      others.push_back(option);
    } else if (option[1] != 'l' && option[1] != 'D' && option[1] != 'U' && option != "-std=c++17") {
      return std::nullopt;  // the compiler itself sees whether a macro changes a precompiled header
    }
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  if (!level.empty()) others.insert(others.begin(), level);
  return others;
}

}  // namespace warpsmith
