#include "reward_service/compiler/extension_compiler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr char kHeader[] = "#include <torch/extension.h>\n";

CompiledProgram Refuse(const absl::Status& status) {
  return RefusedProgram(absl::StrCat("error: ", status.message(), "\n"));
}

void Append(std::initializer_list<std::string> more, std::vector<std::string>* to) {
  to->insert(to->end(), more.begin(), more.end());
}

}  // namespace

// As torch.utils.cpp_extension calls g++, but for -O3 where it leaves the choice to the candidate.
std::vector<std::string> ExtensionCompiler::Flags() const {
  const std::string include = options_.torch_dir / "include";
  std::vector<std::string> flags = {"-shared", "-fPIC", "-std=c++17", "-pipe", "-O2"};
  Append({"-fdiagnostics-color=never", "-fmax-errors=20", "-fno-diagnostics-show-caret", "-w"}, &flags);
  Append({"-DTORCH_API_INCLUDE_EXTENSION_H", "-D_GLIBCXX_USE_CXX11_ABI=1"}, &flags);
  Append({"-isystem", include, "-isystem", include + "/torch/csrc/api/include"}, &flags);
  Append({"-isystem", options_.python_include.string()}, &flags);
  return flags;
}

std::vector<std::string> ExtensionCompiler::Precompiled() {
  absl::MutexLock lock(&mutex_);
  if (!tried_) {
    tried_ = true;
    const std::string name =
        Sha256Hex(absl::StrCat(toolchain_.fingerprint, "\n", absl::StrJoin(Flags(), "\n")));
    const std::filesystem::path folder = options_.work_directory / ("torch-" + name.substr(0, 16));
    std::vector<std::string> command = {toolchain_.compiler};
    for (const std::string& flag : Flags()) command.push_back(flag);
    const absl::Status status = PrecompileHeader(command, kHeader, folder);
    if (status.ok()) header_ = folder / "prelude.h";
    if (!status.ok()) LogWarning(absl::StrCat("torch/extension.h is not precompiled: ", status.ToString()));
  }
  if (header_.empty()) return {};
  return {"-include", header_.string()};
}

absl::StatusOr<CompiledProgram> ExtensionCompiler::Compile(const ExtensionArguments& arguments,
                                                           const std::atomic<bool>& cancelled) {
  const absl::StatusOr<std::string> source = ExtensionSource(arguments);
  if (!source.ok()) return Refuse(source.status());
  const absl::StatusOr<std::vector<std::string>> cflags = CheckFlags(arguments.extra_cflags);
  if (!cflags.ok()) return Refuse(cflags.status());
  const absl::StatusOr<std::vector<std::string>> ldflags = CheckFlags(arguments.extra_ldflags);
  if (!ldflags.ok()) return Refuse(ldflags.status());
  const std::string library_folder = options_.torch_dir / "lib";
  Compilation compilation{.command = {toolchain_.compiler}, .limits = options_.limits};
  const auto append = [&](const std::vector<std::string>& flags) {
    compilation.command.insert(compilation.command.end(), flags.begin(), flags.end());
  };
  append(Flags());
  append(*cflags);
  append({"-DTORCH_EXTENSION_NAME=" + arguments.name});
  append(Precompiled());
  compilation.link_flags = {"-L" + library_folder, "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"};
  compilation.link_flags.insert(compilation.link_flags.end(), ldflags->begin(), ldflags->end());
  compilation.read_only_paths = {options_.torch_dir / "include", library_folder, options_.work_directory};
  return RunCompilation(compilation, *source, cancelled);
}

std::string ExtensionCompiler::Key(const ExtensionArguments& arguments) const {
  Sha256 digest;
  const auto add = [&](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) digest.Update(absl::StrCat(text.size(), ":", text));
    digest.Update(";");
  };
  add({toolchain_.fingerprint, options_.torch_dir.string(), arguments.name});
  add(Flags());
  add(arguments.cpp_sources);
  add(arguments.cuda_sources);
  add(arguments.functions);
  add(arguments.extra_cflags);
  add(arguments.extra_ldflags);
  return digest.HexDigest();
}

}  // namespace warpsmith
