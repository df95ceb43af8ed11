#include "reward_service/grading/environment.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr size_t kFewCores = 4;

std::string CpuModel() {
  const std::string text = ReadFile("/proc/cpuinfo", 16 << 20).value_or("");
  const size_t begin = text.find("model name");
  if (begin == std::string::npos) return "unknown";
  const size_t value = text.find(':', begin) + 2;
  return Escape(text.substr(value, text.find('\n', value) - value), 128);
}

}  // namespace

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

absl::StatusOr<CoreDivision> DivideCores(const std::vector<int>& allowed, const std::vector<int>& wanted) {
  CoreDivision division;
  division.lane = wanted;
  std::sort(division.lane.begin(), division.lane.end());
  if (std::adjacent_find(division.lane.begin(), division.lane.end()) != division.lane.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("lane_cores ", CoresText(wanted), ": a core is named twice"));
  }
  if (division.lane.empty()) {
    const size_t num_lane = allowed.size() <= kFewCores ? 1 : allowed.size() / 2;
    division.lane.assign(allowed.end() - static_cast<std::ptrdiff_t>(num_lane), allowed.end());
  }
  if (!std::includes(allowed.begin(), allowed.end(), division.lane.begin(), division.lane.end())) {
    return absl::InvalidArgumentError(
        absl::StrCat("lane_cores ", CoresText(wanted), ": this process may use ", CoresText(allowed)));
  }
  std::set_difference(allowed.begin(), allowed.end(), division.lane.begin(), division.lane.end(),
                      std::back_inserter(division.others));
  if (division.others.empty()) division.others = division.lane;
  return division;
}

absl::Status PinTo(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0)
    return ErrnoStatus("cannot bind to cores", CoresText(cores));
  return absl::OkStatus();
}

std::string CoresText(const std::vector<int>& cores) { return absl::StrJoin(cores, ","); }

v1::Environment MakeEnvironment(const std::string& lane_cores, const std::string& compiler,
                                const std::string& torch_version, const std::string& torch_cpu_capability) {
  char hostname[256] = {};
  gethostname(hostname, sizeof(hostname) - 1);
  v1::Environment environment;
  environment.set_hostname(Escape(hostname, 255));
  environment.set_cpu_model(CpuModel());
  environment.set_lane_cores(lane_cores);
  environment.set_compiler(compiler);
  environment.set_torch_version(torch_version);
  environment.set_torch_cpu_capability(torch_cpu_capability);
  environment.set_service_version(GetBuildInfo().version);
  return environment;
}

}  // namespace warpsmith
