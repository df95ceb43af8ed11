#include "reward_service/grading/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <fstream>

namespace warpsmith {
namespace {

// From a cached answer to a deadline; a grade takes about a second.
const prometheus::Histogram::BucketBoundaries kSecondsBounds = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,
                                                                1,     3,     10,   30,   100};

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& grades =
      prometheus::BuildCounter()
          .Name("warpsmith_reward_grades_total")
          .Help("Grades given, by tenant and verdict; cached: measured for an earlier request")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& errors =
      prometheus::BuildCounter()
          .Name("warpsmith_reward_errors_total")
          .Help("Requests that got an error instead of a grade, by tenant and status")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& llm_judge_requests =
      prometheus::BuildCounter()
          .Name("warpsmith_llm_judge_requests_total")
          .Help("Requests to the LLM judge by what came of them; no_turn, paused: opinions without a request")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& phases =
      prometheus::BuildHistogram()
          .Name("warpsmith_reward_phase_seconds")
          .Help("Wall time by phase, of grades that were measured")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& waiting =
      prometheus::BuildGauge()
          .Name("warpsmith_reward_waiting")
          .Help(
              "Requests without an answer, and measurements "
              "that wait for a compile worker, a lane or the LLM judge")
          .Register(registry);
  prometheus::Gauge& lanes_lost = prometheus::BuildGauge()
                                      .Name("warpsmith_reward_lanes_lost")
                                      .Help("Lanes out of service until their referee starts again")
                                      .Register(registry)
                                      .Add({});
  prometheus::Gauge& resident_bytes = prometheus::BuildGauge()
                                          .Name("process_resident_memory_bytes")
                                          .Help("Memory of the service's own process")
                                          .Register(registry)
                                          .Add({});

  void Observe(const char* phase, double seconds) {
    if (seconds > 0) phases.Add({{"phase", phase}}, kSecondsBounds).Observe(seconds);
  }
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::CountGrade(const std::string& tenant, const v1::Grade& grade) {
  families_->grades
      .Add({{"tenant", tenant},
            {"verdict", v1::Verdict_Name(grade.verdict())},
            {"cached", grade.cached() ? "true" : "false"}})
      .Increment();
  if (grade.cached()) return;
  const v1::Cost& cost = grade.cost();
  families_->Observe("queue", cost.queue_seconds());
  families_->Observe("compile", cost.compile_seconds());
  families_->Observe("lane_wait", cost.lane_wait_seconds());
  families_->Observe("oracle", cost.oracle_seconds());
  families_->Observe("verify", cost.verify_seconds());
  families_->Observe("time", cost.time_seconds());
  families_->Observe("profile", cost.profile_seconds());
  families_->Observe("llm_judge", cost.llm_judge_seconds());
  families_->Observe("total", cost.total_seconds());
}

void Metrics::CountError(const std::string& tenant, const absl::Status& status) {
  families_->errors.Add({{"tenant", tenant}, {"status", absl::StatusCodeToString(status.code())}})
      .Increment();
}

void Metrics::CountLlmJudge(const std::string& result) {
  families_->llm_judge_requests.Add({{"result", result}}).Increment();
}

std::string Metrics::Text(const Backlog& backlog) {
  families_->waiting.Add({{"for", "answer"}}).Set(backlog.num_requests);
  families_->waiting.Add({{"for", "compile_worker"}}).Set(backlog.num_to_compile);
  families_->waiting.Add({{"for", "lane"}}).Set(backlog.num_to_judge);
  families_->waiting.Add({{"for", "llm_judge"}}).Set(backlog.num_to_ask);
  families_->lanes_lost.Set(backlog.num_lanes_lost);
  families_->resident_bytes.Set(ResidentBytes());
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace warpsmith
