#include "reward_service/compiler/compiler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<std::unique_ptr<Compiler>> Compiler::Create(const std::filesystem::path& work_directory,
                                                           CompileLimits limits) {
  ASSIGN_OR_RETURN(Toolchain toolchain, ProbeToolchain());
  absl::StatusOr<std::vector<Prelude>> preludes =
      BuildPreludes(toolchain, std::filesystem::absolute(work_directory));
  if (!preludes.ok()) {
    RETURN_IF_ERROR(CheckHeaders(toolchain));
    LogWarning(absl::StrCat("programs compile slower, for headers cannot be precompiled in ",
                            work_directory.string(), ": ", preludes.status().message(),
                            "; make room there, or name another cache_directory, and start again"));
    preludes.emplace();
  }
  return std::unique_ptr<Compiler>(new Compiler(std::move(toolchain), *std::move(preludes), limits));
}

absl::StatusOr<CompiledProgram> Compiler::Compile(std::string_view source,
                                                  const std::atomic<bool>& cancelled) const {
  Compilation compilation{
      .command = {toolchain_.compiler}, .system_paths = toolchain_.system_paths, .limits = limits_};
  std::vector<std::string>& command = compilation.command;
  command.insert(command.end(), toolchain_.flags.begin(), toolchain_.flags.end());
  if (const Prelude* prelude = ChoosePrelude(preludes_, source); prelude != nullptr) {
    command.push_back("-include");
    command.push_back(prelude->directory / "prelude.h");
    compilation.read_only_paths = {prelude->directory};
  }
  command.insert(command.end(), {"-x", "c++", "-", "-o", kLibraryFile});
  ASSIGN_OR_RETURN(CompilationResult result, RunCompilation(compilation, source, cancelled));
  return ProgramOf(std::move(result));
}

}  // namespace warpsmith
