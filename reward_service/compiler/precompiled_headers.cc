#include "reward_service/compiler/precompiled_headers.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "reward_service/compiler/prelude.h"

namespace warpsmith {

PrecompiledHeaders::~PrecompiledHeaders() {
  std::thread maker;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    maker = std::move(maker_);
  }
  if (maker.joinable()) maker.join();
}

PrecompiledHeaders::Header* PrecompiledHeaders::Find(const std::string& text,
                                                     const std::vector<std::string>& flags,
                                                     size_t num_sets_max) {
  const std::string key =
      Sha256Hex(absl::StrCat(toolchain_->fingerprint, "\n", text, "\n", absl::StrJoin(flags, "\n")));
  std::map<std::string, Header>& sets = headers_[text];
  const auto found = sets.find(key);
  if (found != sets.end()) return &found->second;
  if (sets.size() >= num_sets_max) return nullptr;
  Header& header = sets[key];
  header.text = text;
  header.flags = flags;
  header.folder = work_directory_ / key.substr(0, 16);
  std::error_code error;
  header.made = std::filesystem::exists(header.folder / "prelude.h.gch", error);
  return &header;
}

std::vector<std::string> PrecompiledHeaders::Include(const std::string& text,
                                                     const std::vector<std::string>& flags,
                                                     const PrecompilePolicy& policy) {
  absl::MutexLock lock(&mutex_);
  Header* const header = Find(text, flags, policy.num_sets_max);
  if (header == nullptr) return {};
  if (header->made) return {"-include", (header->folder / "prelude.h").string()};
  if (!header->asked && ++header->num_uses > policy.num_plain_uses) {
    header->asked = true;
    asked_.push_back(header);
    if (!maker_.joinable()) maker_ = std::thread([this] { MakeAll(); });
  }
  return {};
}

void PrecompiledHeaders::AwaitIdle() {
  const absl::MutexLock lock(&mutex_, absl::Condition(this, &PrecompiledHeaders::IsIdle));
}

PrecompiledHeaders::Header* PrecompiledHeaders::Next() {
  const absl::MutexLock lock(&mutex_, absl::Condition(this, &PrecompiledHeaders::HasWork));
  if (stopping_) return nullptr;
  Header* const header = asked_.front();
  asked_.pop_front();
  making_ = true;
  return header;
}

void PrecompiledHeaders::Finish(Header* header, bool made) {
  const absl::MutexLock lock(&mutex_);
  making_ = false;
  header->made = made;
}

void PrecompiledHeaders::MakeAll() {
  pthread_setname_np(pthread_self(), "headers");
  while (Header* const header = Next()) {
    std::vector<std::string> command = {toolchain_->compiler};
    command.insert(command.end(), header->flags.begin(), header->flags.end());
    const absl::Status status = PrecompileHeader(command, header->text, header->folder, &stopping_);
    if (!status.ok() && !stopping_) {
      LogWarning(absl::StrCat("headers are not precompiled: ", status.ToString()));
    }
    Finish(header, status.ok());
  }
}

}  // namespace warpsmith
