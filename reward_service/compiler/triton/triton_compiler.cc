#include "reward_service/compiler/triton/triton_compiler.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/compile_cache.h"
#include "reward_service/compiler/toolchain.h"
#include "reward_service/cubin/cubin.h"

namespace warpsmith {
namespace {

// Inside.
constexpr char kKernelsFile[] = "/tmp/kernels";
constexpr char kCubinsFile[] = "/tmp/cubins";
constexpr size_t kArchitectureBytes = 16;
constexpr size_t kLengthBytes = 8;
constexpr size_t kCubinsMax = 64;

// Without importing Triton, which takes a second. The folders are those of the interpreter, whether in a virtual
// environment or not, and that of Triton.
constexpr char kProbe[] = R"(
import importlib.metadata, importlib.util, sys, sysconfig
spec = importlib.util.find_spec("triton")
if spec is not None:
    print(importlib.metadata.version("triton"))
    paths = sysconfig.get_paths()
    print(*sorted({sys.prefix + "/pyvenv.cfg", sys.executable, paths["stdlib"], paths["platstdlib"],
                   *spec.submodule_search_locations}), sep="\n")
)";

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

absl::StatusOr<TritonToolchain> ProbeTriton(const std::filesystem::path& python) {
  ASSIGN_OR_RETURN(const std::string text, OutputOf({python.string(), "-I", "-c", kProbe}));
  const std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  if (lines.front().empty()) {
    return absl::NotFoundError(
        absl::StrCat(python.string(), " has no package triton: install the one that its torch asks for"));
  }
  TritonToolchain toolchain{.python = python, .version = lines.front(), .read_only_paths = {}};
  for (size_t i = 1; i < lines.size(); ++i) {
    std::error_code error;
    if (std::filesystem::exists(lines[i], error)) toolchain.read_only_paths.emplace_back(lines[i]);
  }
  return toolchain;
}

absl::StatusOr<std::unique_ptr<TritonCompiler>> TritonCompiler::Create(TritonToolchain toolchain,
                                                                       TritonCompilerOptions options) {
  ASSIGN_OR_RETURN(const std::string script, ReadFile(options.script));
  std::string fingerprint =
      absl::StrCat("triton ", toolchain.version, "\n", toolchain.python.string(), "\n", script);
  return std::unique_ptr<TritonCompiler>(
      new TritonCompiler(std::move(toolchain), std::move(options), std::move(fingerprint)));
}

absl::StatusOr<CompiledProgram> TritonCompiler::Compile(std::string_view kernels,
                                                        const std::atomic<bool>& cancelled) const {
  Compilation compilation{.command = {toolchain_.python.string(), "-I", "-B", options_.script.string(),
                                      kKernelsFile, kCubinsFile},
                          .output_files = {kKernelsFile, kCubinsFile},
                          .read_only_paths = toolchain_.read_only_paths,
                          .limits = options_.limits};
  compilation.read_only_paths.push_back(options_.script);
  ASSIGN_OR_RETURN(CompilationResult result, RunCompilation(compilation, kernels, cancelled));
  std::vector<Cubin> cubins;
  if (result.succeeded()) {
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadMemoryFile(result.outputs[1].get(), options_.limits.library_bytes_max));
    cubins = ParseCubins(bytes);
  }
  CompiledProgram program = ProgramOf(std::move(result));
  program.compiler = absl::StrCat("Triton ", toolchain_.version);
  program.cubins = std::move(cubins);
  return program;
}

std::string TritonCompiler::Key(std::string_view kernels) const {
  return CompileCache::Key(fingerprint_, kernels);
}

std::vector<Cubin> ParseCubins(std::string_view bytes) {
  std::vector<Cubin> cubins;
  while (bytes.size() > kArchitectureBytes + kLengthBytes && cubins.size() < kCubinsMax) {
    const std::string_view name = bytes.substr(0, kArchitectureBytes);
    const uint64_t length = LittleEndian(bytes.substr(kArchitectureBytes, kLengthBytes));
    bytes.remove_prefix(kArchitectureBytes + kLengthBytes);
    if (length > bytes.size() || length > kCubinBytesMax) break;
    cubins.push_back({std::string(name.substr(0, name.find(char{}))),
                      std::string(bytes.substr(0, static_cast<size_t>(length)))});
    bytes.remove_prefix(static_cast<size_t>(length));
  }
  return cubins;
}

}  // namespace warpsmith
