#include "reward_service/compiler/cuda_compiler.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/memory_file.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/compile_cache.h"
#include "reward_service/compiler/halves/halves_command.h"
#include "reward_service/compiler/nvcc_steps.h"
#include "reward_service/compiler/standard_names.h"

namespace warpsmith {
namespace {

constexpr std::string_view kRealPrefix = "sm_";
constexpr int kHalvesSecondsMax = 5;
constexpr int64_t kHalvesFileBytesMax = int64_t{16} << 20;  // warpsmith-nvrtc, or one of its headers
constexpr char kNoBlas[] =
    "the task allows cuBLAS and cuDNN, and their headers are neither in nvcc's toolkit nor beside torch: "
    "install nvidia-cublas and nvidia-cudnn-cu13";
constexpr int64_t kCubinBytesMax = int64_t{64} << 20;  // more than a file of any compilation

// "90a" of "sm_90a".
std::string Number(const std::string& architecture) { return architecture.substr(kRealPrefix.size()); }

bool IsArchitecture(std::string_view name) {
  if (name.substr(0, kRealPrefix.size()) != kRealPrefix) return false;
  name.remove_prefix(kRealPrefix.size());
  if (!name.empty() && (name.back() == 'a' || name.back() == 'f')) name.remove_suffix(1);
  return name.size() >= 2 && name.size() <= 3 && std::all_of(name.begin(), name.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c));
         });
}

// What takes NVRTC longer is no short program, and nvcc still has time for it.
CompileLimits HalvesLimits(CompileLimits limits) {
  limits.cpu_seconds_max = std::min(limits.cpu_seconds_max, kHalvesSecondsMax);
  limits.wall_seconds_max = std::min(limits.wall_seconds_max / 2, static_cast<double>(kHalvesSecondsMax));
  return limits;
}

std::vector<std::filesystem::path> BlasFolders(const CudaToolchain& toolchain) {
  return toolchain.blas_include_folders.value_or(std::vector<std::filesystem::path>());
}

// Of what programs are compiled with in halves beside the toolchain. A file that is missing counts as empty.
std::string DigestOf(const HalvesPlaces& places) {
  std::set<std::filesystem::path> files = {places.program};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(places.header_directory, error))
    files.insert(entry.path());
  std::string contents;
  for (const std::filesystem::path& file : files)
    absl::StrAppend(&contents, file.filename().string(), "\n",
                    ReadFile(file, kHalvesFileBytesMax).value_or(""), "\n");
  return Sha256Hex(contents);
}

// Whether `source` may have a lambda for the device: there a word stands behind the "]", or what may become one.
bool MayHaveDeviceLambda(std::string_view source) {
  for (const std::string_view words : {"EXTENDED_LAMBDA", ":>", "?\?)"}) {
    if (source.find(words) != std::string_view::npos) return true;
  }
  for (size_t i = source.find(']'); i != std::string_view::npos; i = source.find(']', i + 1)) {
    const size_t next = source.find_first_not_of(" \t\r\n\v\f", i + 1);
    if (next == std::string_view::npos) break;
    const auto c = static_cast<unsigned char>(source[next]);
    if (std::isalpha(c) || c >= 0x80 ||
        std::string_view("_/\\#").find(source[next]) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// What a program makes nvcc read. Most are spared <functional> and the special functions of <cmath>, with all that
// these bring, over half of nvcc's time. What names anything of the standard library has it all: programs count on it
// without including it.
std::vector<std::string> HeaderFlags(std::string_view source) {
  const bool names_nothing = NamesOnly(source, {});
  std::vector<std::string> flags;
  if (!names_nothing || MayHaveDeviceLambda(source)) flags.push_back("--extended-lambda");
  if (names_nothing) flags.push_back(kNoSpecialFunctions);
  return flags;
}

}  // namespace

CudaCompiler::CudaCompiler(CudaToolchain toolchain, CudaCompilerOptions options)
    : toolchain_(std::move(toolchain)),
      options_(std::move(options)),
      halves_digest_(options_.halves ? DigestOf(*options_.halves) : "") {}

absl::Status CheckArchitectures(const std::vector<std::string>& architectures) {
  if (architectures.empty() || architectures.size() > kArchitecturesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(architectures.size(), " GPU architectures, want 1 to ", kArchitecturesMax));
  }
  for (const std::string& name : architectures) {
    if (!IsArchitecture(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("GPU architecture \"", Escape(name, 32), "\", want a name like sm_90a"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> ArchitectureFlags(const std::vector<std::string>& architectures) {
  std::vector<std::string> flags;
  for (const std::string& name : architectures) {
    // "-arch" would run everything twice, for PTX that no GPU of ours needs.
    flags.push_back("-gencode");
    flags.push_back(absl::StrCat("arch=compute_", Number(name), ",code=", name));
  }
  if (architectures.size() > 1) flags.insert(flags.end(), {"--threads", "0"});
  return flags;
}

std::vector<std::string> CubinFiles(const std::string& stem, const std::vector<std::string>& architectures) {
  // Of one architecture nvcc leaves the name out.
  if (architectures.size() == 1) return {absl::StrCat("/tmp/", stem, ".cubin")};
  std::vector<std::string> files;
  for (const std::string& name : architectures) {
    files.push_back(absl::StrCat("/tmp/", stem, ".compute_", Number(name), ".cubin"));
  }
  return files;
}

absl::StatusOr<std::vector<Cubin>> ReadCubins(const std::vector<UniqueFd>& outputs, size_t first,
                                              const std::vector<std::string>& architectures) {
  std::vector<Cubin> cubins;
  for (size_t i = 0; i < architectures.size(); ++i) {
    ASSIGN_OR_RETURN(std::string bytes, ReadMemoryFile(outputs[first + i].get(), kCubinBytesMax));
    cubins.push_back({architectures[i], std::move(bytes)});
  }
  return cubins;
}

std::vector<std::string> CudaCompiler::Command(std::string_view source,
                                               const std::vector<std::string>& architectures,
                                               LinkedLibraries libraries) const {
  std::vector<std::string> command = {toolchain_.compiler};
  for (const std::vector<std::string>& flags : {HeaderFlags(source), ArchitectureFlags(architectures)})
    command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), toolchain_.include_flags.begin(), toolchain_.include_flags.end());
  if (libraries == LinkedLibraries::kNone) {
    command.push_back(absl::StrCat("-I", options_.withheld_directory.string()));
  } else {
    for (const std::filesystem::path& folder : BlasFolders(toolchain_))
      command.insert(command.end(), {"-isystem", folder.string()});
  }
  std::vector<std::string> host_flags = {"-fPIC", "-O3", "-march=native", "-fdiagnostics-color=never",
                                         "-fno-diagnostics-show-caret"};
  host_flags.insert(host_flags.end(), toolchain_.link_flags.begin(), toolchain_.link_flags.end());
  // Without CUDA's static runtime, which costs three steps more and is another one in each library. The name
  // of the shared one is linked although no symbol of it is found.
  command.insert(command.end(),
                 {"-O3", "-std=c++17", "-shared", "-cudart", "none", "-ccbin", toolchain_.host_compiler,
                  "-Xcompiler", absl::StrJoin(host_flags, ","), "--expt-relaxed-constexpr",
                  "--brief-diagnostics=true", "--compress-mode=none", "-Xlinker", "--no-as-needed",
                  absl::StrCat("-L", options_.stub_directory.string()), "-lcudart"});
  if (libraries == LinkedLibraries::kBlas)
    command.insert(command.end(), {"-lcublas", "-lcublasLt", "-lcudnn"});
  command.insert(command.end(), {"--keep", "--keep-dir", "/tmp", "-o", kLibraryFile, "candidate.cu"});
  return command;
}

std::optional<HalvesCommand> CudaCompiler::InHalves(std::string_view source,
                                                    const std::vector<std::string>& architectures,
                                                    LinkedLibraries libraries) const {
  const bool can_be = options_.halves && toolchain_.nvrtc && architectures.size() == 1;
  if (!can_be || libraries == LinkedLibraries::kBlas) return std::nullopt;
  const NvrtcFiles& nvrtc = *toolchain_.nvrtc;
  const HalvesTools tools{.host_compiler = toolchain_.host_compiler,
                          .host_flags = toolchain_.host_include_flags,
                          .link_flags = toolchain_.link_flags,
                          .fatbinary = std::filesystem::path(toolchain_.compiler).parent_path() / "fatbinary",
                          .nvrtc = nvrtc.library,
                          .include_folders = nvrtc.include_folders,
                          .program = options_.halves->program,
                          .header_directory = options_.halves->header_directory,
                          .stub_directory = options_.stub_directory};
  return MakeHalvesCommand(tools, source, architectures[0], NamesOnly(source, {}), kLibraryFile);
}

absl::StatusOr<CompilationResult> CudaCompiler::RunInHalves(const HalvesCommand& halves,
                                                            const std::atomic<bool>& cancelled) const {
  ASSIGN_OR_RETURN(const UniqueFd host, SealedMemoryFile(halves.host));
  Compilation compilation{.command = halves.command,
                          .source_file = kDeviceHalfFile,
                          .input_files = {{kHostHalfFile, host.get()}},
                          .output_files = {kLibraryFile, kHalvesCubinFile},
                          .system_paths = toolchain_.system_paths,
                          .read_only_paths = toolchain_.read_only_paths,
                          .limits = HalvesLimits(options_.limits)};
  std::vector<std::filesystem::path>& paths = compilation.read_only_paths;
  paths.insert(paths.end(),
               {options_.halves->program, options_.halves->header_directory, options_.stub_directory});
  for (const std::filesystem::path& file : toolchain_.nvrtc->files) {
    const bool is_system = file.string().rfind("/usr/", 0) == 0;
    (is_system ? compilation.system_paths : paths).push_back(file);
  }
  return RunCompilation(compilation, halves.device, cancelled);
}

absl::StatusOr<CompilationResult> CudaCompiler::Run(std::string_view source,
                                                    const std::vector<std::string>& architectures,
                                                    const std::atomic<bool>& cancelled,
                                                    LinkedLibraries libraries, std::string* compiler) const {
  const bool with_blas = libraries == LinkedLibraries::kBlas;
  const absl::Time begin = absl::Now();
  if (const std::optional<HalvesCommand> halves = InHalves(source, architectures, libraries)) {
    absl::StatusOr<CompilationResult> result = RunInHalves(*halves, cancelled);
    *compiler = absl::StrCat("NVRTC of ", toolchain_.version);
    if (absl::IsCancelled(result.status()) || (result.ok() && result->succeeded())) return result;
    if (!result.ok())  // nvcc may do without what failed
      LogWarning(absl::StrCat("a program is compiled by nvcc, in halves it could not be: ",
                              result.status().ToString()));
  }
  *compiler = toolchain_.version;
  Compilation compilation{.command = InTwoChains(Command(source, architectures, libraries), cancelled),
                          .source_file = "/tmp/candidate.cu",
                          .system_paths = toolchain_.system_paths,
                          .read_only_paths = toolchain_.read_only_paths,
                          .limits = options_.limits};
  compilation.limits.wall_seconds_max -= absl::ToDoubleSeconds(absl::Now() - begin);
  compilation.read_only_paths.push_back(options_.stub_directory);
  const std::vector<std::filesystem::path> headers =
      with_blas ? BlasFolders(toolchain_) : std::vector{options_.withheld_directory};
  compilation.read_only_paths.insert(compilation.read_only_paths.end(), headers.begin(), headers.end());
  for (std::string& file : CubinFiles("candidate", architectures)) {
    compilation.output_files.push_back(std::move(file));
  }
  return RunCompilation(compilation, source, cancelled);
}

absl::StatusOr<CompiledProgram> CudaCompiler::Compile(std::string_view source,
                                                      const std::vector<std::string>& architectures,
                                                      const std::atomic<bool>& cancelled,
                                                      LinkedLibraries libraries) const {
  RETURN_IF_ERROR(CheckArchitectures(architectures));
  if (libraries == LinkedLibraries::kBlas && !toolchain_.blas_include_folders)
    return absl::FailedPreconditionError(kNoBlas);
  std::string compiler;
  ASSIGN_OR_RETURN(CompilationResult result, Run(source, architectures, cancelled, libraries, &compiler));
  std::vector<Cubin> cubins;
  if (result.succeeded()) {
    ASSIGN_OR_RETURN(cubins, ReadCubins(result.outputs, 1, architectures));
  }
  CompiledProgram program = ProgramOf(std::move(result));
  program.compiler = std::move(compiler);
  program.cubins = std::move(cubins);
  return program;
}

std::string CudaCompiler::Key(std::string_view source, const std::vector<std::string>& architectures,
                              LinkedLibraries libraries) const {
  std::string compiled = absl::StrCat(toolchain_.fingerprint, "\n",
                                      absl::StrJoin(Command(source, architectures, libraries), "\n"));
  // What is compiled is what the splitter makes of it, which is not the same for ever.
  if (const std::optional<HalvesCommand> halves = InHalves(source, architectures, libraries))
    absl::StrAppend(&compiled, "\n", halves_digest_, absl::StrJoin(halves->command, "\n"), halves->device,
                    halves->host);
  return CompileCache::Key(compiled, source);
}

}  // namespace warpsmith
