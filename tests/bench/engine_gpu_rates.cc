// Rates of the engine on a GPU, a JSON object a line:
//
//   engine_gpu_rates [--shape 8B | --model DIR] --batch 1,8,64,400 [--prompt 128] [--answer 256]
//   engine_gpu_rates ... --group 16 --prompt 4096
//   engine_gpu_rates ... --invariance
//   engine_gpu_rates --churn 500
//
// More flags: --device N, or --devices 0,1 that share the model; --memory-share S, --batch-invariant 0|1, --dtype
// bfloat16|float16|float32. Weights are random unless --model names a checkpoint. Answers have their full length: no
// token ends one.
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/touch_constants.h"
#include "core/distributed/nccl_environment.h"
#include "tests/bench/gpu_engine_churn.h"
#include "tests/bench/gpu_engine_run.h"
#include "tests/gpu/device_rate.h"

namespace warpsmith {
namespace {

constexpr int64_t kCopiedBytes = int64_t{2} << 30;  // read and written
constexpr int kAlone = 0;                           // the job whose sample decodes alone and among others

struct Flags {
  std::map<std::string, std::string> values;

  bool has(const std::string& flag) const { return values.contains(flag); }
  std::string text(const std::string& flag, const std::string& otherwise) const {
    return has(flag) ? values.at(flag) : otherwise;
  }
  int number(const std::string& flag, int otherwise) const {
    return std::stoi(text(flag, std::to_string(otherwise)));
  }
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc && std::string(argv[i + 1]).rfind("--", 0) != 0;
    const std::string flag = argv[i];
    flags.values[flag] = has_value ? argv[++i] : "";
  }
  return flags;
}

std::vector<int> Numbers(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream stream(text);
  for (std::string each; std::getline(stream, each, ',');) numbers.push_back(std::stoi(each));
  return numbers;
}

std::vector<int> DevicesOf(const Flags& flags) {
  return Numbers(flags.text("--devices", flags.text("--device", "0")));
}

// Of all devices together.
double CopyRate(const std::vector<int>& devices) {
  double rate = 0;
  for (const int device : devices) {
    cudaSetDevice(device);
    rate += kCopiedBytes / CopySeconds(kCopiedBytes);
  }
  return rate;
}

DeviceDtype DtypeOf(const Flags& flags) {
  const std::string text = flags.text("--dtype", "");
  for (const DeviceDtype dtype : {DeviceDtype::kFloat16, DeviceDtype::kFloat32}) {
    if (text == DtypeName(dtype)) return dtype;
  }
  return DeviceDtype::kBfloat16;
}

EngineOptions OptionsFrom(const Flags& flags, int num_slots, int context_tokens) {
  EngineOptions options{.num_slots = num_slots, .context_tokens_max = context_tokens};
  options.cuda = CudaPlacement{.devices = DevicesOf(flags),
                               .dtype = DtypeOf(flags),
                               .memory_share = std::stod(flags.text("--memory-share", "0.9")),
                               .batch_invariant = flags.number("--batch-invariant", 1) != 0};
  return options;
}

GenerationJob Job(int id, std::vector<int32_t> prompt, int num_samples, int answer_tokens) {
  GenerationJob job{.id = id, .sampling = {.answer_tokens_max = answer_tokens}};
  GenerationGroup group{.prompt_token_ids = std::move(prompt)};
  for (int i = 0; i < num_samples; ++i) {
    group.samples.push_back({.sample_index = i, .seed = static_cast<uint64_t>(1000 * id + i)});
  }
  job.groups.push_back(std::move(group));
  return job;
}

// `count` requests whose prompts have nothing in common, nor with those of another `round`.
std::vector<GenerationJob> Separate(int round, int count, int prompt_tokens, int answer_tokens,
                                    const ModelConfig& config) {
  std::vector<GenerationJob> jobs;
  for (int i = 0; i < count; ++i) {
    jobs.push_back(Job(i, BenchPrompt(1 + i + 500 * round, prompt_tokens, config), 1, answer_tokens));
  }
  return jobs;
}

void Print(const nlohmann::json& line) { std::cout << line << std::endl; }

void PrintRate(const BenchModel& model, int batch, int prompt, int answer, double copy_rate,
               const RunResult& result) {
  const double steps = static_cast<double>(result.steady_tokens) / batch;
  const double tokens_seen = batch * (prompt + answer / 2.0);
  const double bytes =
      static_cast<double>(model.weight_bytes()) + tokens_seen * static_cast<double>(model.entry_bytes());
  Print({{"name", "decode"},
         {"batch", batch},
         {"prompt_tokens", prompt},
         {"answer_tokens", answer},
         {"tokens_per_second", static_cast<double>(result.steady_tokens) / result.steady_seconds},
         {"whole_tokens_per_second", static_cast<double>(result.num_tokens) / result.all_seconds},
         {"step_ms", 1e3 * result.steady_seconds / steps},
         {"first_token_ms_p50", result.first_ms(0.5)},
         {"first_token_ms_p99", result.first_ms(0.99)},
         {"steps", result.num_steps},
         {"step_bytes", bytes},
         {"copy_share", bytes * steps / result.steady_seconds / copy_rate}});
}

int Rates(const Flags& flags, const BenchModel& model, double copy_rate) {
  const std::vector<int> batches = Numbers(flags.text("--batch", "1,8,64,400"));
  const int prompt = flags.number("--prompt", 128), answer = flags.number("--answer", 256);
  const int slots = *std::max_element(batches.begin(), batches.end());
  GpuEngineRun engine(model, OptionsFrom(flags, slots, prompt + answer + 1));
  int round = 0;
  for (const int batch : batches) {
    engine.Run(Separate(round++, batch, prompt, 40, model.config));  // captures the graph, loads kernels
    const RunResult result = engine.Run(Separate(round++, batch, prompt, answer, model.config));
    PrintRate(model, batch, prompt, answer, copy_rate, result);
  }
  return 0;
}

int Groups(const Flags& flags, const BenchModel& model) {
  const int group = flags.number("--group", 16), prompt = flags.number("--prompt", 4096);
  constexpr int kAnswer = 16;
  GpuEngineRun engine(model, OptionsFrom(flags, group, prompt + kAnswer + 1));
  engine.Run(Separate(0, group, prompt, kAnswer, model.config));
  const RunResult together = engine.Run({Job(1, BenchPrompt(1 + 500, prompt, model.config), group, kAnswer)});
  const RunResult separate = engine.Run(Separate(2, group, prompt, kAnswer, model.config));
  Print({{"name", "group"},
         {"group", group},
         {"prompt_tokens", prompt},
         {"together_first_token_ms_p50", together.first_ms(0.5)},
         {"together_first_token_ms_p99", together.first_ms(0.99)},
         {"together_prefilled", together.num_prefilled},
         {"separate_first_token_ms_p50", separate.first_ms(0.5)},
         {"separate_first_token_ms_p99", separate.first_ms(0.99)},
         {"separate_prefilled", separate.num_prefilled}});
  return 0;
}

// A sample alone, and the same among 63 others of other lengths. Tokens a second of the 64.
double Invariance(const Flags& flags, const BenchModel& model, bool batch_invariant) {
  constexpr int kOthers = 63, kPrompt = 100, kAnswer = 200;
  EngineOptions options = OptionsFrom(flags, kOthers + 1, 2 * kPrompt + kOthers + kAnswer + 1);
  options.cuda->batch_invariant = batch_invariant;
  GpuEngineRun engine(model, options);
  const GenerationJob one = Job(kAlone, BenchPrompt(3, kPrompt, model.config), 1, kAnswer);
  const auto sample_of = [](const RunResult& result) { return result.samples.at(kAlone).front().sample; };
  const FinishedSample alone = sample_of(engine.Run({one}));
  engine.Reload();  // the prompt is computed again, among the others
  std::vector<GenerationJob> jobs = {one};
  for (int i = 1; i <= kOthers; ++i)
    jobs.push_back(Job(i, BenchPrompt(100 + i, kPrompt + i, model.config), 1, kAnswer));
  const FinishedSample among = sample_of(engine.Run(jobs));
  const auto [end, other] = std::mismatch(alone.answer_token_ids.begin(), alone.answer_token_ids.end(),
                                          among.answer_token_ids.begin(), among.answer_token_ids.end());
  for (GenerationJob& job : jobs) job.groups[0].prompt_token_ids[0] += 200;
  const RunResult timed = engine.Run(jobs);
  const double rate = static_cast<double>(timed.steady_tokens) / timed.steady_seconds;
  Print({{"name", "invariance"},
         {"batch_invariant", batch_invariant},
         {"tokens", alone.answer_token_ids.size()},
         {"equal_tokens", end - alone.answer_token_ids.begin()},
         {"equal_log_probs", alone.log_probs == among.log_probs},
         {"tokens_per_second", rate}});
  return rate;
}

int BothInvariances(const Flags& flags, const BenchModel& model) {
  const double invariant = Invariance(flags, model, true), free = Invariance(flags, model, false);
  Print({{"name", "invariance_cost"}, {"percent", 100 * (1 - invariant / free)}});
  return 0;
}

int Churn(const Flags& flags) {
  const EngineOptions options = OptionsFrom(flags, 24, 256);
  const ChurnResult result =
      RunChurn(Qwen3Shape("small").value(), options, flags.number("--churn", 500), [](uint64_t version) {
        LoadedWeights weights;
        weights.random_seed = version;
        return weights;
      });
  Print({{"name", "churn"},
         {"jobs", result.num_jobs},
         {"samples", result.num_samples},
         {"answered", result.num_answered},
         {"answered_twice", result.num_answered_twice},
         {"lost", result.num_lost},
         {"failed_jobs", result.num_failed},
         {"untold_versions", result.num_untold_versions},
         {"weight_changes", result.num_weight_changes},
         {"sleeps", result.num_sleeps},
         {"pages_missing", result.num_pages_missing},
         {"ok", result.ok()}});
  return result.ok() ? 0 : 1;
}

int Main(const Flags& flags) {
  if (flags.has("--churn")) return Churn(flags);
  BenchModel model{.directory = flags.text("--model", ""), .dtype = DtypeOf(flags)};
  const absl::StatusOr<ModelConfig> config =
      model.directory.empty() ? Qwen3Shape(flags.text("--shape", "0.6B")) : LoadModelConfig(model.directory);
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return 1;
  }
  model.config = *config;
  const std::vector<int> devices = DevicesOf(flags);
  const double copy_rate = CopyRate(devices);
  cudaDeviceProp device = {};
  cudaGetDeviceProperties(&device, devices.at(0));
  Print({{"name", "device"},
         {"device", device.name},
         {"devices", devices},
         {"copy_bytes_per_second", copy_rate},
         {"weights", model.directory.empty() ? flags.text("--shape", "0.6B") : model.directory.string()},
         {"dtype", DtypeName(model.dtype)},
         {"weight_bytes", model.weight_bytes()},
         {"batch_invariant", flags.number("--batch-invariant", 1) != 0}});
  if (flags.has("--group")) return Groups(flags, model);
  if (flags.has("--invariance")) return BothInvariances(flags, model);
  return Rates(flags, model, copy_rate);
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  warpsmith::LeaveMulticastOff();
  warpsmith::TouchConstants(warpsmith::kTorchLibrary);
  return warpsmith::Main(warpsmith::ParseFlags(argc, argv));
}
