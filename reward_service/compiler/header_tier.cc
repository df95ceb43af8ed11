#include "reward_service/compiler/header_tier.h"

#include <algorithm>
#include <system_error>

#include "absl/status/statusor.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "reward_service/compiler/prelude.h"
#include "reward_service/compiler/standard_names.h"

namespace warpsmith {
namespace {

// Making them takes as long as two compilations without.
constexpr int kPlainUsesOfTorch = 2;
constexpr char kPrelude[] = "#include <torch/extension.h>\n";
constexpr int64_t kFileBytesMax = int64_t{64} << 20;

// A comment that changes with the facade's headers and library: what was made with others is not used.
std::string VersionComment(const std::filesystem::path& facade_directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(facade_directory, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Sha256 digest;
  for (const std::filesystem::path& file : files) {
    const absl::StatusOr<std::string> content = ReadFile(file, kFileBytesMax);
    if (content.ok()) digest.Update(Sha256Hex(*content));
  }
  return "// " + digest.HexDigest() + "\n";
}

std::vector<std::string> TorchIncludes(const HeaderPlaces& places) {
  const std::string include = places.torch_dir / "include";
  return {"-DTORCH_API_INCLUDE_EXTENSION_H", "-isystem", include, "-isystem",
          include + "/torch/csrc/api/include"};
}

std::vector<std::string> Joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::vector<HeaderTier> HeaderTiers(const HeaderPlaces& places) {
  const std::string libraries = "-L" + places.LinkDirectory().string();
  // Linkers that leave out what no symbol is found in would leave out all of these.
  const std::vector<std::string> torch_libraries = {libraries, "-Wl,--no-as-needed", "-lc10", "-ltorch_cpu",
                                                    "-ltorch"};
  std::vector<HeaderTier> tiers;
  if (!places.facade_directory.empty()) {
    const std::string version = VersionComment(places.facade_directory);
    const std::string facade = places.facade_directory;
    const std::vector<std::string> own = {"-isystem", facade + "/include"};
    const std::vector<std::string> facade_library = {"-L" + facade, "-lwarpsmith_facade"};
    // A program that calls a special function does not compile on this tier and goes to the next one.
    tiers.push_back({.name = "facade",
                     .flags = Joined({"-isystem", facade + "/shims"}, own),
                     .cuda_flags = {kNoSpecialFunctions},
                     .lean_cuda_flags = {"-DWARPSMITH_FACADE_LEAN"},
                     .precompiled = version + kWithoutSpecialFunctions + kPrelude,
                     .policy = {.num_sets_max = 16},
                     .link_flags = facade_library});
    tiers.push_back({.name = "light",
                     .flags = Joined(Joined({"-isystem", facade + "/light"}, own), TorchIncludes(places)),
                     .precompiled = version + kPrelude,
                     .policy = {.num_sets_max = 4},
                     .link_flags = Joined(facade_library, torch_libraries),
                     .links_torch = true,
                     .names = places.facade_directory / "light_names.txt"});
  }
  tiers.push_back({.name = "torch",
                   .flags = Joined(TorchIncludes(places), {"-isystem", places.python_include.string()}),
                   .precompiled = kPrelude,
                   .policy = {.num_sets_max = 2, .num_plain_uses = kPlainUsesOfTorch},
                   .link_flags = Joined(torch_libraries, {"-ltorch_python"}),
                   .links_torch = true,
                   .names = places.facade_directory.empty() ? "" : places.facade_directory / "names.txt"});
  return tiers;
}

}  // namespace warpsmith
