#include "reward_service/server/options.h"

#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"
#include "reward_service/measure/reference_form.h"
#include "reward_service/scoring/formulas.h"

namespace warpsmith {
namespace {

void ReadGpus(ConfigSection& section, GpuChoice* choice) {
  std::string gpus = "all";
  section.Read(
      "gpus", &gpus,
      {"",
       "GPUs on which candidates are judged, a lane each: all that the driver of CUDA shows "
       "(CUDA_VISIBLE_DEVICES), none, or by index, as cuda:1 or cuda:0,1. required: all; with it, and with "
       "indices, the service does not start without one that works."});
  const absl::StatusOr<GpuChoice> parsed = ParseGpuChoice(gpus);
  if (parsed.ok()) *choice = *parsed;
  if (!parsed.ok()) section.AddError("gpus", StdView(parsed.status().message()));
}

std::filesystem::path DefaultCacheDirectory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "warpsmith" / "reward";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache" / "warpsmith" / "reward";
}

std::string KnownForms() {
  std::vector<std::string> keys;
  for (const ReferenceForm& form : ReferenceForms()) keys.emplace_back(form.key);
  return absl::StrJoin(keys, ", ");
}

void ReadBaselines(ConfigSection& section, std::vector<std::string>* baselines) {
  section.Read(
      "baselines", baselines,
      {"",
       "Forms of the reference, beside the eager one, that programs on a GPU are compared with: "
       "torch_compile, and cuda_graph, the eager kernels recorded once and launched together. Each is "
       "timed once a task, which takes seconds, with torch_compile up to two minutes."});
  std::set<std::string> seen;
  for (const std::string& key : *baselines) {
    const bool is_known = FindReferenceForm(key) != nullptr;
    if (!is_known) section.AddError("baselines", absl::StrCat("has ", key, ", known are ", KnownForms()));
    if (!seen.insert(key).second) section.AddError("baselines", absl::StrCat("has ", key, " twice"));
  }
}

void ReadTiming(ConfigSection& section, TimingEffort* timing) {
  constexpr int kInstancesMax = 64;
  section.Read("num_instances_min", &timing->num_instances_min, IntegerRange{.min = 1, .max = kInstancesMax},
               {"processes", "Processes of a candidate that are timed at least."});
  section.Read("num_instances_max", &timing->num_instances_max, IntegerRange{.min = 1, .max = kInstancesMax},
               {"processes", "Processes of a candidate that are timed at most."});
  section.Read("num_rounds_max", &timing->num_rounds_max, IntegerRange{.min = 1, .max = kRoundsMax},
               {"rounds", "Rounds of calls in each process."});
  section.Read(
      "relative_width_max", &timing->relative_width_max, RealRange{.min = 0.001, .max = 10},
      {"share",
       "Width of the 95 % interval of the speed-up, relative to the speed-up, or to 1 where it is less, "
       "above which another process is timed."});
  ReadBaselines(section, &timing->baselines);
  if (timing->num_instances_max < timing->num_instances_min) {
    section.AddError("num_instances_max",
                     absl::StrCat("is ", timing->num_instances_max, ", less than num_instances_min, ",
                                  timing->num_instances_min));
  }
}

void ReadTls(ConfigSection& section, TlsFiles* tls) {
  section.Read("certificate", &tls->certificate,
               {"", "PEM file of the certificate of the service, with its chain."});
  section.Read("key", &tls->key, {"", "PEM file of the key of that certificate."});
  section.Read(
      "authority", &tls->authority,
      {"",
       "PEM file of the authority that signs certificates of clients. With it every client must show one."});
  section.RequireFile("certificate", tls->certificate);
  section.RequireFile("key", tls->key);
  section.RequireFile("authority", tls->authority);
}

std::vector<TenantOptions> ReadTenants(ConfigSection& section) {
  std::vector<TenantOptions> tenants;
  for (const std::string& name : section.WrittenKeys()) {
    ConfigSection& written = section.Section(name, "The name of a tenant, which you choose.");
    TenantOptions& tenant = tenants.emplace_back();
    tenant.name = name;
    written.Read("token_file", &tenant.token_file,
                 {"",
                  "File with the token that requests of this tenant carry; openssl rand -hex 32 makes one. "
                  "Empty: the tenant shows a certificate with its name."});
    written.Read("requests_max", &tenant.requests_max, IntegerRange{.min = 0, .max = 100000},
                 {"requests", "Requests of this tenant that may wait. 0: an equal part of queue_capacity."});
    written.Read("share", &tenant.share, RealRange{.min = 0.001, .max = 1000},
                 {"",
                  "Share of the time of lanes and compilers, relative to the shares of the other tenants "
                  "that have work waiting."});
    written.RequireFile("token_file", tenant.token_file);
  }
  return tenants;
}

void ReadLlmJudge(ConfigSection& section, LlmJudgeOptions* judge) {
  section.Read(
      "url", &judge->url,
      {"", "URL of the API, e.g. http://127.0.0.1:8000/v1, without /chat/completions. Empty: no judge."});
  section.Read("model", &judge->model, {"", "Name of the model at that endpoint."});
  section.Read(
      "api_key_file", &judge->api_key_file,
      {"", "File with the key of the API, which is sent over https or to this machine only. Empty: no key."});
  section.Read("prompt_file", &judge->prompt_file,
               {"", "Template of the question. Empty: the one that is shipped."});
  section.ReadChoice("response_format", &judge->response_format, {"json_schema", "json_object", "none"},
                     {"", "Format of replies that the endpoint understands."});
  section.Read("timeout_seconds", &judge->timeout_seconds, RealRange{.min = 0.1, .max = 600},
               {"seconds", "A grade waits at most so long for the opinion."});
  section.Read("max_concurrent", &judge->max_concurrent, IntegerRange{.min = 1, .max = 64},
               {"requests", "Requests to the endpoint at once."});
  section.RequireFile("api_key_file", judge->api_key_file);
  section.RequireFile("prompt_file", judge->prompt_file);
  if (!judge->url.empty() && judge->model.empty()) {
    section.AddError("model", "is empty: name the model that the endpoint serves");
  }
  if (judge->url.empty() && !judge->model.empty()) {
    section.AddError("url", "is empty: write the endpoint's, e.g. http://127.0.0.1:8000/v1, or no model");
  }
}

void ReadLimits(ConfigSection& section, ServiceOptions* options) {
  section.Read("compile_seconds_max", &options->compile_seconds_max, IntegerRange{.min = 1, .max = 600},
               {"seconds", "Time limit of a compilation."});
  section.Read(
      "call_seconds_max", &options->judge.call_seconds_max, RealRange{.min = 0.01, .max = 600},
      {"seconds",
       "Time limit of a call of a candidate, a first one that tries algorithms or configurations included."});
  section.Read("lane_seconds_max", &options->judge.lane_seconds_max, RealRange{.min = 0.1, .max = 3600},
               {"seconds",
                "Time for which a candidate may hold the lane in all, besides what the reference's "
                "constructor takes."});
}

std::vector<std::string> KnownFormulas() {
  const std::vector<std::string_view> names = FormulaNames();
  return {names.begin(), names.end()};
}

}  // namespace

absl::StatusOr<ServiceOptions> ReadServiceOptions(ConfigSection& section) {
  ServiceOptions options;
  std::vector<int64_t> lane_cores;
  section.Read("address", &options.address, {"", "Address of the gRPC door, host:port or unix:/path."});
  section.Read("http_address", &options.http_address,
               {"",
                "Address of the door for HTTP/JSON, metrics and the page of rewards, host:port. Empty: no "
                "such door. The Python client expects 127.0.0.1:8061."});
  section.ReadChoice("formula", &options.default_formula, KnownFormulas(),
                     {"", "Reward formula of requests that name none: docs/reward_formulas.md."});
  ReadTls(section.Section("tls", "Encrypts both doors. PEM files."), &options.tls);
  options.tenants = ReadTenants(section.Section(
      "tenants",
      "Who may ask. Without tenants everybody is one, 'default'. With them a request needs the "
      "token of one, or a client's certificate in its name."));
  ReadGpus(section, &options.gpus);
  section.Read("num_lanes", &options.num_lanes, IntegerRange{.min = 0, .max = 1024},
               {"lanes",
                "Candidates that are judged at once, each on an equal part of lane_cores. 0: one on each of "
                "them. They share memory and caches: more lanes grade faster and time less exactly."});
  section.Read("lane_cores", &lane_cores, IntegerRange{.min = 0, .max = 1023},
               {"core numbers",
                "Numbers of the cores that only judging uses. Empty: the last core of four or fewer, else "
                "the last half."});
  section.Read("num_compile_workers", &options.num_compile_workers, IntegerRange{.min = 0, .max = 1024},
               {"compilations",
                "Compilations at once. 0: one for each core, without the cores of the lanes where judges "
                "have no real-time priority."});
  section.Read("queue_capacity", &options.queue_capacity, IntegerRange{.min = 1, .max = 100000},
               {"requests", "Requests that may wait. One more is told when to come back."});
  section.Read(
      "cache_bytes_max", &options.cache_bytes_max, IntegerRange{.min = 1 << 20},
      {"bytes",
       "Memory for grades and compiled programs. Programs take as much again on disk, grades half of it."});
  section.Read(
      "cache_directory", &options.cache_directory,
      {"",
       "Folder for compiled programs and grades; each service needs its own. Empty: warpsmith/reward in the "
       "cache folder of the user. A folder that cannot be written to costs time, but no grade."});
  ReadLimits(section, &options);
  ReadTiming(section.Section(
                 "timing",
                 "How precisely speed-ups are measured. Fewer processes and rounds, or a wider interval, "
                 "grade faster."),
             &options.timing);
  ReadLlmJudge(section.Section("llm_judge",
                               "A language model behind an OpenAI-compatible endpoint that reads "
                               "CORRECT programs and may lower their rubric, never lift it."),
               &options.llm_judge);
  RETURN_IF_ERROR(section.Finish());
  options.lane_cores.assign(lane_cores.begin(), lane_cores.end());
  if (options.cache_directory.empty()) options.cache_directory = DefaultCacheDirectory();
  return options;
}

absl::Status CheckFormulaAskedFor(ConfigSection& trainer) {
  ConfigSection& grpo = trainer.Section("grpo");
  std::string formula;
  grpo.Read("formula", &formula);
  trainer.IgnoreOtherKeys();
  grpo.IgnoreOtherKeys();
  if (const absl::Status known = ComputeReward(formula, {}).status(); !known.ok()) {
    grpo.AddError("formula", StdView(known.message()));
  }
  return trainer.Finish();
}

}  // namespace warpsmith
