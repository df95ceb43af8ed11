#include "reward_service/compiler/extension_compiler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/compile_options.h"

namespace warpsmith {
namespace {

CompiledProgram Refuse(const absl::Status& status) {
  return RefusedProgram(absl::StrCat("error: ", status.message(), "\n"));
}

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

void Append(const std::vector<std::string>& more, std::vector<std::string>* to) {
  to->insert(to->end(), more.begin(), more.end());
}

std::unique_ptr<const HeaderNames> LoadNames(const HeaderTier& tier) {
  if (tier.names.empty()) return nullptr;
  absl::StatusOr<HeaderNames> names = HeaderNames::Load(tier.names);
  if (names.ok()) return std::make_unique<const HeaderNames>(*std::move(names));
  LogWarning(
      absl::StrCat("programs that cannot compile are tried with more headers: ", names.status().ToString()));
  return nullptr;
}

}  // namespace

ExtensionCompiler::ExtensionCompiler(Toolchain toolchain, ExtensionCompilerOptions options)
    : toolchain_(std::move(toolchain)),
      options_(std::move(options)),
      tiers_(HeaderTiers(options_.places)),
      headers_(&toolchain_, options_.work_directory) {
  for (const HeaderTier& tier : tiers_) names_.push_back(LoadNames(tier));
}

absl::StatusOr<CompiledProgram> ExtensionCompiler::Compile(const ExtensionArguments& arguments,
                                                           const std::atomic<bool>& cancelled) {
  const absl::StatusOr<std::string> source = ExtensionSource(arguments);
  if (!source.ok()) return Refuse(source.status());
  const absl::StatusOr<std::vector<std::string>> cflags = AllowedOptions(arguments.extra_cflags);
  if (!cflags.ok()) return Refuse(cflags.status());
  const absl::StatusOr<std::vector<std::string>> ldflags = AllowedOptions(arguments.extra_ldflags);
  if (!ldflags.ok()) return Refuse(ldflags.status());
  const Checked call{arguments.name, *source, *cflags, *ldflags,
                     absl::Now() + absl::Seconds(options_.limits.wall_seconds_max)};
  CompiledProgram program;
  for (size_t i = 0; i < tiers_.size(); ++i) {
    // What misses a name that this tier lacks, too, goes past it; the last one has them all.
    const bool lacks =
        i > 0 && i + 1 < tiers_.size() && names_[i] != nullptr && LacksAName(program.diagnostics, *names_[i]);
    if (lacks) continue;
    ASSIGN_OR_RETURN(program, CompileOn(tiers_[i], call, cancelled));
    program.headers = tiers_[i].name;
    if (program.succeeded() || !MayNeedOtherHeaders(program.diagnostics, names_.back().get())) break;
  }
  return program;
}

absl::StatusOr<CompiledProgram> ExtensionCompiler::CompileOn(const HeaderTier& tier, const Checked& call,
                                                             const std::atomic<bool>& cancelled) {
  Compilation compilation{
      .command = {toolchain_.compiler}, .system_paths = toolchain_.system_paths, .limits = options_.limits};
  compilation.limits.wall_seconds_max = std::max(0.0, absl::ToDoubleSeconds(call.deadline - absl::Now()));
  std::vector<std::string> flags = BaseFlags();
  Append(tier.flags, &flags);
  Append(flags, &compilation.command);
  Append(call.cflags, &compilation.command);
  Append({"-DTORCH_EXTENSION_NAME=" + call.name}, &compilation.command);
  if (const auto header_options = HeaderOptions(call.cflags)) {
    Append(*header_options, &flags);
    Append(headers_.Include(tier.precompiled, flags, tier.policy), &compilation.command);
  }
  Append({"-x", "c++", "-", "-x", "none"}, &compilation.command);
  Append(toolchain_.link_flags, &compilation.command);
  Append(tier.link_flags, &compilation.command);
  Append(call.ldflags, &compilation.command);
  Append({"-o", kLibraryFile}, &compilation.command);
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
  ASSIGN_OR_RETURN(CompilationResult result, RunCompilation(compilation, call.source, cancelled));
  return ProgramOf(std::move(result));
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
  return digest.HexDigest();
}

}  // namespace warpsmith
