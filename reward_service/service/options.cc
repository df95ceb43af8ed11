#include "reward_service/service/options.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

std::filesystem::path DefaultCacheDirectory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "warpsmith" / "reward";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache" / "warpsmith" / "reward";
}

void ReadTiming(ConfigSection& section, TimingEffort* timing) {
  constexpr int kInstancesMax = 64;
  constexpr int kRoundsMax = 3;  // for as many are drawn
  section.Read("num_instances_min", &timing->num_instances_min, IntegerRange{.min = 1, .max = kInstancesMax});
  section.Read("num_instances_max", &timing->num_instances_max, IntegerRange{.min = 1, .max = kInstancesMax});
  section.Read("num_rounds_max", &timing->num_rounds_max, IntegerRange{.min = 1, .max = kRoundsMax});
  section.Read("relative_width_max", &timing->relative_width_max, RealRange{.min = 0.001, .max = 10});
}

void ReadTls(ConfigSection& section, TlsFiles* tls) {
  section.Read("certificate", &tls->certificate);
  section.Read("key", &tls->key);
  section.Read("authority", &tls->authority);
}

std::vector<TenantOptions> ReadTenants(ConfigSection& section) {
  std::vector<TenantOptions> tenants;
  for (const std::string& name : section.WrittenKeys()) {
    ConfigSection& written = section.Section(name);
    TenantOptions& tenant = tenants.emplace_back();
    tenant.name = name;
    written.Read("token_file", &tenant.token_file);
    written.Read("requests_max", &tenant.requests_max, IntegerRange{.min = 0, .max = 100000});
    written.Read("share", &tenant.share, RealRange{.min = 0.001, .max = 1000});
  }
  return tenants;
}

void ReadLlmJudge(ConfigSection& section, LlmJudgeOptions* judge) {
  section.Read("url", &judge->url);
  section.Read("model", &judge->model);
  section.Read("api_key_file", &judge->api_key_file);
  section.Read("prompt_file", &judge->prompt_file);
  section.ReadChoice("response_format", &judge->response_format, {"json_schema", "json_object", "none"});
  section.Read("timeout_seconds", &judge->timeout_seconds, RealRange{.min = 0.1, .max = 600});
  section.Read("max_concurrent", &judge->max_concurrent, IntegerRange{.min = 1, .max = 64});
  if (!judge->url.empty() && judge->model.empty()) {
    section.AddError("model", "is empty: name the model that the endpoint serves");
  }
  if (judge->url.empty() && !judge->model.empty()) {
    section.AddError("url", "is empty: write the endpoint's, e.g. http://127.0.0.1:8000/v1, or no model");
  }
}

}  // namespace

absl::StatusOr<ServiceOptions> ReadServiceOptions(ConfigSection& section) {
  ServiceOptions options;
  std::vector<int64_t> lane_cores;
  std::string cache_directory;
  section.Read("address", &options.address);
  section.Read("http_address", &options.http_address);
  ReadTls(section.Section("tls"), &options.tls);
  options.tenants = ReadTenants(section.Section("tenants"));
  section.Read("num_lanes", &options.num_lanes, IntegerRange{.min = 1, .max = 64});
  section.Read("lane_cores", &lane_cores, IntegerRange{.min = 0, .max = 1023});
  section.Read("num_compile_workers", &options.num_compile_workers, IntegerRange{.min = 0, .max = 1024});
  section.Read("queue_capacity", &options.queue_capacity, IntegerRange{.min = 1, .max = 100000});
  section.Read("answer_bytes_max", &options.answer_bytes_max, IntegerRange{.min = 1024, .max = 16 << 20});
  section.Read("cache_bytes_max", &options.cache_bytes_max, IntegerRange{.min = 1 << 20});
  section.Read("cache_directory", &cache_directory);
  section.Read("compile_seconds_max", &options.compile_seconds_max, IntegerRange{.min = 1, .max = 600});
  section.Read("call_seconds_max", &options.judge.call_seconds_max, RealRange{.min = 0.01, .max = 600});
  section.Read("lane_seconds_max", &options.judge.lane_seconds_max, RealRange{.min = 0.1, .max = 3600});
  section.Read("jail_cpu_seconds_max", &options.judge.cpu_seconds_max, RealRange{.min = 0.1, .max = 3600});
  section.Read("drain_seconds_max", &options.drain_seconds_max, RealRange{.min = 0, .max = 3600});
  ReadTiming(section.Section("timing"), &options.timing);
  ReadLlmJudge(section.Section("llm_judge"), &options.llm_judge);
  RETURN_IF_ERROR(section.Finish());
  if (options.timing.num_instances_max < options.timing.num_instances_min) {
    return absl::InvalidArgumentError(
        absl::StrCat("reward_service.timing: num_instances_max is ", options.timing.num_instances_max,
                     ", less than num_instances_min, ", options.timing.num_instances_min));
  }
  options.lane_cores.assign(lane_cores.begin(), lane_cores.end());
  options.cache_directory =
      cache_directory.empty() ? DefaultCacheDirectory() : std::filesystem::path(cache_directory);
  return options;
}

}  // namespace warpsmith
