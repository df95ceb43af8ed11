#include "reward_service/compiler/extension_compiler.h"

#include <pthread.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/compile_options.h"
#include "reward_service/compiler/cuda_compiler.h"
#include "reward_service/compiler/cuda_options.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/compiler/nvcc_steps.h"
#include "reward_service/compiler/standard_names.h"

namespace warpsmith {
namespace {

// As torch.utils.cpp_extension calls g++, but for -O2 where it leaves the choice to the candidate.
std::vector<std::string> BaseFlags() {
  return {"-shared",
          "-fPIC",
          "-std=c++17",
          "-pipe",
          "-O2",
          "-fdiagnostics-color=never",
          "-fmax-errors=20",
          "-fno-diagnostics-show-caret",
          "-w",
          "-D_GLIBCXX_USE_CXX11_ABI=1"};
}

// As torch.utils.cpp_extension calls nvcc, with the words of messages that g++ has above. What the steps make is kept
// for the machine code in it.
std::vector<std::string> BaseCudaFlags() {
  return {"-O3",
          "-cudart",
          "none",
          "--compress-mode=none",
          "--brief-diagnostics=true",
          "--keep",
          "--keep-dir",
          "/tmp",
          "-w",
          "-Xcompiler",
          "-fPIC,-O2,-fdiagnostics-color=never,-fmax-errors=20,-fno-diagnostics-show-caret",
          "-D_GLIBCXX_USE_CXX11_ABI=1",
          "-D__CUDA_NO_HALF_OPERATORS__",
          "-D__CUDA_NO_HALF_CONVERSIONS__",
          "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
          "-D__CUDA_NO_HALF2_OPERATORS__",
          "--expt-relaxed-constexpr"};
}

bool ChoosesStandard(const std::vector<std::string>& flags) {
  return std::any_of(flags.begin(), flags.end(),
                     [](const std::string& flag) { return flag.rfind("-std=", 0) == 0; });
}

// Of the two halves, inside.
constexpr char kCppObject[] = "/tmp/main.o";
constexpr char kCudaObject[] = "/tmp/cuda.o";

template <typename Item>
void Append(const std::vector<Item>& more, std::vector<Item>* to) {
  to->insert(to->end(), more.begin(), more.end());
}
void Append(std::initializer_list<std::string> more, std::vector<std::string>* to) {
  to->insert(to->end(), more.begin(), more.end());
}

bool IsLibraryOfCuda(std::string_view flag) {
  return flag.substr(0, 4) == "-lcu" || flag == "-lc10_cuda" || flag == "-ltorch_cuda";
}

std::unique_ptr<const HeaderNames> LoadNames(const HeaderTier& tier) {
  if (tier.names.empty()) return nullptr;
  absl::StatusOr<HeaderNames> names = HeaderNames::Load(tier.names);
  if (names.ok()) return std::make_unique<const HeaderNames>(*std::move(names));
  LogWarning(
      absl::StrCat("programs that cannot compile are tried with more headers: ", names.status().ToString()));
  return nullptr;
}

// Whether a function that is to be bound is missing, and the C++ half never names it: a declaration in
// `cuda_sources` is in another translation unit, and no header of Torch's declares functions outside all
// namespaces.
bool BindsWhatIsNowhere(const ExtensionArguments& arguments, std::string_view diagnostics) {
  const auto& sources = arguments.cpp_sources;
  return std::any_of(
      arguments.functions.begin(), arguments.functions.end(), [&](const std::string& function) {
        const std::string missing = absl::StrCat("error: '", function, "' was not declared in this scope");
        return diagnostics.find(missing) != diagnostics.npos &&
               std::none_of(sources.begin(), sources.end(),
                            [&](const std::string& text) { return HasWord(text, function); });
      });
}

}  // namespace

ExtensionCompiler::ExtensionCompiler(Toolchain toolchain, ExtensionCompilerOptions options)
    : toolchain_(std::move(toolchain)),
      options_(std::move(options)),
      tiers_(HeaderTiers(options_.places)),
      headers_(&toolchain_, options_.work_directory) {
  for (const HeaderTier& tier : tiers_) names_.push_back(LoadNames(tier));
}

absl::StatusOr<ExtensionCompiler::Checked> ExtensionCompiler::Check(
    const ExtensionArguments& arguments) const {
  Checked call{.name = arguments.name,
               .deadline = absl::Now() + absl::Seconds(options_.limits.wall_seconds_max)};
  ASSIGN_OR_RETURN(call.sources, SourcesOf(arguments));
  ASSIGN_OR_RETURN(call.cflags, AllowedOptions(arguments.extra_cflags));
  ASSIGN_OR_RETURN(call.ldflags, AllowedOptions(arguments.extra_ldflags));
  call.with_cuda = options_.cuda.has_value() && (arguments.with_cuda || !call.sources.cuda.empty());
  for (const std::string& flag : call.ldflags) {
    if (!call.with_cuda && IsLibraryOfCuda(flag)) {
      return absl::InvalidArgumentError(
          absl::StrCat("linker option \"", flag, "\" needs with_cuda=True and a service with a GPU"));
    }
  }
  if (call.sources.cuda.empty()) return call;
  if (!options_.cuda) return absl::InvalidArgumentError("CUDA sources need a service with a GPU");
  ASSIGN_OR_RETURN(call.cuda_cflags, AllowedCudaOptions(arguments.extra_cuda_cflags));
  return call;
}

absl::StatusOr<CompiledProgram> ExtensionCompiler::Compile(const ExtensionArguments& arguments,
                                                           const std::atomic<bool>& cancelled) {
  const absl::StatusOr<Checked> call = Check(arguments);
  if (!call.ok()) {
    return CompiledProgram{.diagnostics = absl::StrCat("error: ", call.status().message(), "\n")};
  }
  CompiledProgram program;
  for (size_t i = 0; i < tiers_.size(); ++i) {
    // What misses a name that this tier lacks, too, goes past it; the last one has them all.
    const bool lacks =
        i > 0 && i + 1 < tiers_.size() && names_[i] != nullptr && LacksAName(program.diagnostics, *names_[i]);
    if (lacks) continue;
    ASSIGN_OR_RETURN(program, CompileOn(tiers_[i], *call, cancelled));
    program.headers = tiers_[i].name;
    if (program.succeeded() || BindsWhatIsNowhere(arguments, program.diagnostics)) break;
    if (!MayNeedOtherHeaders(program.diagnostics, names_.back().get())) {
      if (i + 1 < tiers_.size() && names_.back() != nullptr) {
        program.diagnostics = WithoutKnownNames(program.diagnostics, *names_.back());
      }
      break;
    }
  }
  return program;
}

absl::StatusOr<CompiledProgram> ExtensionCompiler::CompileOn(const HeaderTier& tier, const Checked& call,
                                                             const std::atomic<bool>& cancelled) {
  if (!call.sources.cuda.empty()) return CompileHalves(tier, call, cancelled);
  Compilation compilation = CppCompilation(tier, call);
  Append(LinkFlags(tier, call), &compilation.command);
  ASSIGN_OR_RETURN(CompilationResult result, RunCompilation(compilation, call.sources.cpp, cancelled));
  return ProgramOf(std::move(result));
}

absl::StatusOr<CompiledProgram> ExtensionCompiler::CompileHalves(const HeaderTier& tier, const Checked& call,
                                                                 const std::atomic<bool>& cancelled) {
  Compilation cpp_compilation = CppCompilation(tier, call);
  Append({"-c", "-o", kCppObject}, &cpp_compilation.command);
  cpp_compilation.output_files = {kCppObject};
  absl::StatusOr<CompilationResult> cpp = absl::UnknownError("not run");
  std::thread cpp_half([&] {
    pthread_setname_np(pthread_self(), "inline C++");
    cpp = RunCompilation(cpp_compilation, call.sources.cpp, cancelled);
  });
  Compilation cuda_compilation = CudaCompilation(tier, call);
  cuda_compilation.command = InTwoChains(cuda_compilation.command, cancelled);
  absl::StatusOr<CompilationResult> cuda = RunCompilation(cuda_compilation, call.sources.cuda, cancelled);
  cpp_half.join();
  RETURN_IF_ERROR(cpp.status());
  RETURN_IF_ERROR(cuda.status());
  if (!cpp->succeeded() || !cuda->succeeded()) {
    // What a half that compiled warns of would stand before the other's errors.
    return CompiledProgram{.diagnostics = absl::StrCat(cpp->succeeded() ? "" : cpp->diagnostics,
                                                       cuda->succeeded() ? "" : cuda->diagnostics)};
  }
  Compilation link = EmptyCompilation(call);
  link.command = {toolchain_.compiler, "-shared", kCppObject, kCudaObject};
  Append(LinkFlags(tier, call), &link.command);
  link.input_files = {{kCppObject, cpp->outputs[0].get()}, {kCudaObject, cuda->outputs[0].get()}};
  ASSIGN_OR_RETURN(CompilationResult result, RunCompilation(link, "", cancelled));
  CompiledProgram program = ProgramOf(std::move(result));
  program.compiler = absl::StrCat(toolchain_.version, ", ", options_.cuda->toolchain.version);
  if (program.succeeded()) {
    ASSIGN_OR_RETURN(program.cubins, ReadCubins(cuda->outputs, 1, options_.cuda->architectures));
  }
  return program;
}

std::vector<std::string> ExtensionCompiler::LinkFlags(const HeaderTier& tier, const Checked& call) const {
  std::vector<std::string> flags = toolchain_.link_flags;
  Append(tier.link_flags, &flags);
  if (call.with_cuda) {
    Append({"-L" + options_.places.LinkDirectory().string(), "-Wl,--no-as-needed", "-lcudart"}, &flags);
    if (tier.links_torch) Append({"-lc10_cuda", "-ltorch_cuda"}, &flags);
  }
  Append(call.ldflags, &flags);
  Append({"-o", kLibraryFile}, &flags);
  return flags;
}

Compilation ExtensionCompiler::EmptyCompilation(const Checked& call) const {
  Compilation compilation{.system_paths = toolchain_.system_paths, .limits = options_.limits};
  compilation.limits.wall_seconds_max = std::max(0.0, absl::ToDoubleSeconds(call.deadline - absl::Now()));
  // Missing where the disk does not even take the folder.
  std::error_code error;
  if (std::filesystem::exists(options_.work_directory, error)) {
    compilation.read_only_paths = {options_.work_directory};
  }
  const HeaderPlaces& places = options_.places;
  for (const std::filesystem::path& path : {places.facade_directory, places.LinkDirectory(),
                                            places.torch_dir / "include", places.python_include}) {
    if (!path.empty()) compilation.read_only_paths.push_back(path);
  }
  return compilation;
}

Compilation ExtensionCompiler::CppCompilation(const HeaderTier& tier, const Checked& call) {
  Compilation compilation = EmptyCompilation(call);
  compilation.command = {toolchain_.compiler};
  std::vector<std::string> flags = BaseFlags();
  Append(tier.flags, &flags);
  Append(flags, &compilation.command);
  Append(call.cflags, &compilation.command);
  Append({"-DTORCH_EXTENSION_NAME=" + call.name}, &compilation.command);
  if (call.with_cuda) {
    const CudaToolchain& cuda = options_.cuda->toolchain;
    Append(cuda.host_include_flags, &compilation.command);
    compilation.system_paths = cuda.system_paths;
    Append(cuda.read_only_paths, &compilation.read_only_paths);
  }
  if (const auto header_options = HeaderOptions(call.cflags)) {
    Append(*header_options, &flags);
    Append(headers_.Include(tier.precompiled, flags, tier.policy), &compilation.command);
  }
  Append({"-x", "c++", "-", "-x", "none"}, &compilation.command);
  return compilation;
}

Compilation ExtensionCompiler::CudaCompilation(const HeaderTier& tier, const Checked& call) const {
  const auto& [toolchain, architectures] = *options_.cuda;
  Compilation compilation = EmptyCompilation(call);
  compilation.system_paths = toolchain.system_paths;
  Append(toolchain.read_only_paths, &compilation.read_only_paths);
  compilation.source_file = absl::StrCat("/tmp/", std::string(kCudaHalf));
  compilation.output_files = {kCudaObject};
  Append(CubinFiles("cuda", architectures), &compilation.output_files);
  compilation.command = {toolchain.compiler, "-ccbin", toolchain.host_compiler};
  Append(ArchitectureFlags(architectures), &compilation.command);
  Append(BaseCudaFlags(), &compilation.command);
  Append(tier.flags, &compilation.command);
  Append(tier.cuda_flags, &compilation.command);
  if (NamesOnly(call.sources.cuda, kLeanNames)) Append(tier.lean_cuda_flags, &compilation.command);
  Append(call.cuda_cflags, &compilation.command);
  Append(toolchain.include_flags, &compilation.command);
  if (!ChoosesStandard(call.cuda_cflags)) Append({"-std=c++17"}, &compilation.command);
  Append({"-DTORCH_EXTENSION_NAME=" + call.name, "-c", "-o", kCudaObject, std::string(kCudaHalf)},
         &compilation.command);
  return compilation;
}

std::string ExtensionCompiler::Key(const ExtensionArguments& arguments) const {
  Sha256 digest;
  const auto add = [&](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) digest.Update(absl::StrCat(text.size(), ":", text));
    digest.Update(";");
  };
  add({toolchain_.fingerprint, options_.places.torch_dir.string(), arguments.name});
  add(BaseFlags());
  for (const HeaderTier& tier : tiers_) add({tier.name, tier.precompiled});
  add(arguments.cpp_sources);
  add(arguments.cuda_sources);
  add(arguments.functions);
  add(arguments.extra_cflags);
  add(arguments.extra_ldflags);
  if (options_.cuda && (arguments.with_cuda || !arguments.cuda_sources.empty())) {
    add({options_.cuda->toolchain.fingerprint, "cuda"});
    add(BaseCudaFlags());
    add(options_.cuda->architectures);
    add(arguments.extra_cuda_cflags);
  }
  return digest.HexDigest();
}

}  // namespace warpsmith
