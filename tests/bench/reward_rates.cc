// How many distinct candidates a minute the service grades, its caches empty; for reward_bench.py.
//
// Starts a service of its own with a fresh cache folder (or takes --address), sends the candidates over one
// GradeBatch stream with a bounded number in flight, and prints graded a minute, verdicts, and seconds by
// phase. With --load a thread keeps a core outside the lane busy, as a decoding worker does. With --answers
// the candidates are KernelBench answers, and two more things are measured: the same requests again, one by
// one, and the same programs in a service that has compiled them but forgotten their grades.
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "tests/bench/reward_candidates.h"
#include "tests/support/server_process.h"
#include "tests/support/temporary_directory.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {
namespace {

struct BenchFlags {
  std::string address;
  std::string config = "configs/demo.yaml";
  std::string answers;
  std::string candidates = "datasets/generated/cold_start.jsonl";
  std::string out;
  int num_candidates = 240;
  int candidates_per_task = 8;
  int num_warm_up = 8;
  bool load = false;
};

struct BenchRun {
  std::vector<v1::Grade> grades;
  double seconds = 0.0;
};

// Sends all requests and collects all responses; exits when the service is not there.
BenchRun GradeAll(v1::RewardService::Stub* stub, const std::vector<v1::GradeRequest>& requests) {
  grpc::ClientContext context;
  const auto stream = stub->GradeBatch(&context);
  const absl::Time begin = absl::Now();
  std::thread writer([&] {
    for (const v1::GradeRequest& request : requests) stream->Write(request);  // held back by flow control
    stream->WritesDone();
  });
  BenchRun run;
  v1::GradeResponse response;
  while (stream->Read(&response)) {
    if (response.has_grade()) run.grades.push_back(response.grade());
    if (response.has_error()) std::fprintf(stderr, "%s\n", response.error().ShortDebugString().c_str());
  }
  writer.join();
  run.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  const grpc::Status status = stream->Finish();
  if (!status.ok()) std::fprintf(stderr, "the stream ended with: %s\n", status.error_message().c_str());
  return run;
}

// Seconds of each request sent alone.
std::vector<double> GradeOneByOne(v1::RewardService::Stub* stub,
                                  const std::vector<v1::GradeRequest>& requests) {
  std::vector<double> seconds;
  for (const v1::GradeRequest& request : requests) {
    grpc::ClientContext context;
    v1::GradeResponse response;
    const absl::Time begin = absl::Now();
    if (!stub->Grade(&context, request, &response).ok()) continue;
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
  }
  return seconds;
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

using Phase = double (v1::Cost::*)() const;
const std::vector<std::pair<const char*, Phase>>& Phases() {
  static const std::vector<std::pair<const char*, Phase>> phases = {
      {"queue", &v1::Cost::queue_seconds},         {"compile", &v1::Cost::compile_seconds},
      {"lane_wait", &v1::Cost::lane_wait_seconds}, {"oracle", &v1::Cost::oracle_seconds},
      {"verify", &v1::Cost::verify_seconds},       {"time", &v1::Cost::time_seconds},
      {"profile", &v1::Cost::profile_seconds},     {"total", &v1::Cost::total_seconds}};
  return phases;
}

nlohmann::json Percentiles(const std::vector<double>& seconds) {
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {{"mean", sum / static_cast<double>(std::max<size_t>(seconds.size(), 1))},
          {"p50", Percentile(seconds, 0.5)},
          {"p95", Percentile(seconds, 0.95)}};
}

std::vector<double> SecondsOf(const BenchRun& run, Phase phase) {
  std::vector<double> seconds;
  for (const v1::Grade& grade : run.grades) seconds.push_back((grade.cost().*phase)());
  return seconds;
}

nlohmann::json Summarise(const BenchRun& run, bool load) {
  nlohmann::json summary;
  summary["graded"] = run.grades.size();
  summary["wall_seconds"] = run.seconds;
  summary["graded_per_minute"] = 60.0 * static_cast<double>(run.grades.size()) / run.seconds;
  summary["beside_load"] = load;
  std::map<std::string, int> verdicts, headers;
  for (const v1::Grade& grade : run.grades) {
    ++verdicts[v1::Verdict_Name(grade.verdict())];
    if (!grade.compile().headers().empty()) ++headers[grade.compile().headers()];
  }
  summary["verdicts"] = verdicts;
  if (!headers.empty()) summary["headers"] = headers;
  for (const auto& [name, phase] : Phases()) summary["seconds"][name] = Percentiles(SecondsOf(run, phase));
  const v1::Environment& environment = run.grades.front().environment();
  summary["hardware"] = environment.cpu_model();
  summary["lane_cores"] = environment.lane_cores();
  return summary;
}

void PrintTable(const nlohmann::json& summary) {
  std::printf("%-12s %8.1f a minute  (%d in %.1f s, caches empty%s)\n", "graded",
              summary["graded_per_minute"].get<double>(), summary["graded"].get<int>(),
              summary["wall_seconds"].get<double>(),
              summary["beside_load"].get<bool>() ? ", beside load" : "");
  for (const auto& [verdict, count] : summary["verdicts"].items()) {
    std::printf("  %-26s %4d\n", verdict.c_str(), count.get<int>());
  }
  const nlohmann::json headers = summary.value("headers", nlohmann::json::object());
  for (const auto& [name, count] : headers.items()) {
    std::printf("  headers %-18s %4d\n", name.c_str(), count.get<int>());
  }
  std::printf("%-12s %10s %10s %10s\n", "seconds", "mean", "p50", "p95");
  for (const auto& [name, phase] : Phases()) {
    const nlohmann::json& row = summary["seconds"][name];
    std::printf("  %-10s %10.4f %10.4f %10.4f\n", name, row["mean"].get<double>(), row["p50"].get<double>(),
                row["p95"].get<double>());
  }
}

// Keeps the first core busy while it lives.
class Load {
 public:
  Load() : thread_([this] { Spin(); }) {}
  ~Load() {
    stop_ = true;
    thread_.join();
  }

 private:
  void Spin() {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof(first), &first);
    std::vector<float> block(1 << 16, 1.0f);
    while (!stop_) {
      for (float& value : block) value = value * 0.999f + 0.001f;
    }
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A service of ours over a cache folder, or the one at --address.
class Service {
 public:
  Service(const BenchFlags& flags, const std::filesystem::path& folder) {
    std::string address = flags.address;
    if (address.empty()) {
      server_ = std::make_unique<ServerProcess>(
          "warpsmith-reward",
          std::vector<std::string>{"--config", flags.config, "--address",
                                   absl::StrCat("unix:", (folder / "socket").string()), "--set",
                                   absl::StrCat("reward_service.cache_directory=", folder.string()),
                                   "--log-level", "warning"});
      address = server_->address();
    }
    stub_ = v1::RewardService::NewStub(CreateChannel(address));
  }
  v1::RewardService::Stub* stub() const { return stub_.get(); }

 private:
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::RewardService::Stub> stub_;
};

absl::StatusOr<std::vector<v1::GradeRequest>> MakeRequests(const BenchFlags& flags) {
  if (!flags.answers.empty()) return ReadAnswers(flags.answers);
  return MakeRewardCandidates(flags.candidates, flags.num_candidates + flags.num_warm_up,
                              flags.candidates_per_task, "bench-");
}

int Bench(const BenchFlags& flags) {
  const auto requests = MakeRequests(flags);
  if (!requests.ok()) {
    std::fprintf(stderr, "%s\n", std::string(requests.status().message()).c_str());
    return 1;
  }
  TemporaryDirectory folder;
  auto service = std::make_unique<Service>(flags, folder.path());
  // The first requests warm processes and precompiled headers, not caches: they are not measured.
  const auto warm_end = requests->begin() + std::min<ptrdiff_t>(flags.num_warm_up, std::ssize(*requests) - 1);
  GradeAll(service->stub(), {requests->begin(), warm_end});
  const std::vector<v1::GradeRequest> measured(warm_end, requests->end());
  const std::unique_ptr<Load> load = flags.load ? std::make_unique<Load>() : nullptr;
  const BenchRun run = GradeAll(service->stub(), measured);
  if (run.grades.empty()) return 1;
  nlohmann::json summary = Summarise(run, flags.load);
  if (!flags.answers.empty()) {
    summary["repeated_seconds"] = Percentiles(GradeOneByOne(service->stub(), measured));
    service.reset();
    std::filesystem::remove_all(folder.path() / "grades");
    service = std::make_unique<Service>(flags, folder.path());
    const BenchRun again = GradeAll(service->stub(), measured);
    summary["cached_compile_seconds"] = Percentiles(SecondsOf(again, &v1::Cost::compile_seconds));
  }
  PrintTable(summary);
  if (!flags.out.empty()) std::ofstream(flags.out) << summary.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  CLI::App app("Grades distinct candidates and reports the rate");
  warpsmith::BenchFlags flags;
  app.add_option("--config", flags.config, "run file of that service, for how precisely it times");
  app.add_option("--address", flags.address, "a running service; default: one of its own, caches empty");
  app.add_option("--candidates", flags.candidates, "cold-start pairs, JSON lines");
  app.add_option("--answers", flags.answers,
                 "KernelBench answers instead, JSON lines with name, reference, answer");
  app.add_option("--num-warm-up", flags.num_warm_up, "first requests that are not measured");
  app.add_option("--num", flags.num_candidates, "candidates to grade")->check(CLI::Range(1, 100000));
  app.add_option("--per-task", flags.candidates_per_task, "of them for each task")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--load", flags.load, "keep a core outside the lane busy");
  app.add_option("--out", flags.out, "JSON file for the summary");
  CLI11_PARSE(app, argc, argv);
  return warpsmith::Bench(flags);
}
