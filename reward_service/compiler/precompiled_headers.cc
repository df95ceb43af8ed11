#include "reward_service/compiler/precompiled_headers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "reward_service/compiler/prelude.h"

namespace warpsmith {

PrecompiledHeaders::Header* PrecompiledHeaders::Find(const std::string& text, const std::string& key,
                                                     size_t num_sets_max) {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, Header>& sets = headers_[text];
  const auto found = sets.find(key);
  if (found != sets.end()) return &found->second;
  if (sets.size() >= num_sets_max) return nullptr;
  return &sets[key];
}

std::vector<std::string> PrecompiledHeaders::Include(const std::string& text,
                                                     const std::vector<std::string>& flags,
                                                     const PrecompilePolicy& policy) {
  const std::string key =
      Sha256Hex(absl::StrCat(toolchain_->fingerprint, "\n", text, "\n", absl::StrJoin(flags, "\n")));
  Header* const header = Find(text, key, policy.num_sets_max);
  if (header == nullptr) return {};
  absl::MutexLock lock(&header->mutex);
  const std::filesystem::path folder = work_directory_ / key.substr(0, 16);
  const bool is_made = std::filesystem::exists(folder / "prelude.h.gch");
  if (!header->tried && !is_made && ++header->num_uses <= policy.num_plain_uses) return {};
  if (!header->tried) {
    header->tried = true;
    std::vector<std::string> command = {toolchain_->compiler};
    command.insert(command.end(), flags.begin(), flags.end());
    const absl::Status status = PrecompileHeader(command, text, folder);
    if (status.ok()) header->path = folder / "prelude.h";
    if (!status.ok()) LogWarning(absl::StrCat("headers are not precompiled: ", status.ToString()));
  }
  if (header->path.empty()) return {};
  return {"-include", header->path.string()};
}

}  // namespace warpsmith
