#include "tests/support/puppet_zygote.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "core/base/check.h"
#include "core/base/file.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

std::filesystem::path PuppetPython() {
  return ExecutableDirectory().parent_path() / "tests" / "puppet_zygote";
}

void WritePuppetScript(const std::filesystem::path& share_directory, const nlohmann::json& script) {
  std::filesystem::create_directories(share_directory / "jail");
  const absl::Status status = WriteFileAtomically(share_directory / "jail" / "zygote.py", script.dump());
  WS_CHECK(status.ok()) << status.ToString();
}

absl::StatusOr<std::unique_ptr<Zygote>> TryStartPuppets(const nlohmann::json& script) {
  WS_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  const TemporaryDirectory share;
  WritePuppetScript(share.path(), script);
  const std::filesystem::path python = PuppetPython();
  return Zygote::StartPython(python, share.path(), {python.parent_path()}, 1);
}

std::unique_ptr<Zygote> StartPuppets(const nlohmann::json& script) {
  auto zygote = TryStartPuppets(script);
  WS_CHECK(zygote.ok()) << zygote.status().ToString();
  return *std::move(zygote);
}

const Lane& PuppetLane() {
  static const Lane lane({static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) - 1}, false);
  return lane;
}

}  // namespace warpsmith
