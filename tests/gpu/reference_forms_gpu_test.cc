// Other forms of the reference on a real GPU: torch.compile with its compilers in a jail, and CUDA graphs.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/sha256.h"
#include "reward_service/measure/referee.h"
#include "reward_service/measure/reference_form.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(120);

Referee& FormsReferee() {
  static const std::unique_ptr<Referee> referee = [] {
    RefereeOptions options;
    // As a service's: one for the referee, one for programs.
    const int num_cores = static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
    options.lane_cores = {num_cores - 2, num_cores - 1};
    options.gpu_uuid = FindGpus()->front().uuid;
    auto started = Referee::Start(options);
    WS_CHECK(started.ok()) << started.status().ToString();
    return *std::move(started);
  }();
  return *referee;
}

// The reference as a candidate, for a chain of small operators that begins with a statement.
v1::Timing TimingBesideForms(const std::string& statement) {
  const auto source = [&](const char* name) {
    return absl::StrCat("import torch\n\nclass ", name, R"((torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(1024))

    def forward(self, x):
        )",
                        statement, R"(
        return torch.tanh(torch.relu(x * self.weight + 0.5) ** 2)

def get_inputs():
    return [torch.randn(256, 1024)]

def get_init_inputs():
    return []
)");
  };
  JudgeRequest request;
  request.task = {Sha256Hex(source("Model")), source("Model")};
  request.kind = CandidateKind::kKernelBenchPython;
  request.source = source("ModelNew");
  for (const ReferenceForm& form : ReferenceForms()) request.timing.baselines.emplace_back(form.key);
  const absl::Time begin = absl::Now();
  const auto measurement =
      FormsReferee().Judge(request, begin + kPatience + FormsTimeMax(request.timing.baselines));
  WS_CHECK(measurement.ok()) << measurement.status().ToString();
  const v1::Grade& grade = measurement->grade();
  std::printf("%5.2f s  %s  %s\n", absl::ToDoubleSeconds(absl::Now() - begin), grade.verdict_reason().c_str(),
              grade.timing().ShortDebugString().c_str());
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  REQUIRE(grade.timing().baselines_size() == static_cast<int>(ReferenceForms().size()));
  return grade.timing();
}

TEST_CASE("torch.compile and a CUDA graph of the reference are timed once a task") {
  const v1::Timing first = TimingBesideForms("pass");
  const v1::Timing second = TimingBesideForms("pass");
  for (int i = 0; i < first.baselines_size(); ++i) {
    INFO(first.baselines(i).ShortDebugString());
    CHECK(first.baselines(i).unavailable().empty());
    CHECK(first.baselines(i).us() > 0);
    CHECK(first.baselines(i).us() == second.baselines(i).us());
  }
}

TEST_CASE("a reference that waits for the GPU has no CUDA graph, and candidates are timed all the same") {
  const v1::Timing timing = TimingBesideForms("x = x + 0 * x.max().item()");
  for (const v1::Baseline& form : timing.baselines()) {
    INFO(form.ShortDebugString());
    CHECK(form.unavailable().empty() == (form.name() == kTorchCompileName));
    if (form.name() != kTorchCompileName) {
      CHECK_THAT(form.unavailable(), Catch::Contains("cannot be captured"));
    }
  }
}

}  // namespace
}  // namespace warpsmith
