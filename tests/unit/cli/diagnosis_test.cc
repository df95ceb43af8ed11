#include "cli/diagnosis.h"

#include <algorithm>

#include "cli/system_facts.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Level = Finding::Level;

SystemFacts FitMachine() {
  SystemFacts facts;
  facts.num_cores = 2;
  facts.memory_available_gb = 20;
  facts.disk_free_gb = 50;
  facts.bubblewrap_installed = true;
  facts.landlock_abi = 4;
  facts.compiler_version = "12.2.0";
  facts.torch_version = "2.11.0";
  return facts;
}

Finding About(const SystemFacts& facts, const std::string& subject) {
  const std::vector<Finding> findings = Diagnose(facts);
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.subject == subject; });
  REQUIRE(found != findings.end());
  return *found;
}

TEST_CASE("A fit machine has only good findings, without remedies") {
  for (const Finding& finding : Diagnose(FitMachine())) {
    INFO(finding.subject);
    CHECK(finding.level == Level::kGood);
    CHECK(finding.remedy.empty());
  }
}

TEST_CASE("What a run cannot do without is a failure with a remedy") {
  SystemFacts facts = FitMachine();
  facts.user_namespace = "user namespace: Operation not permitted";
  facts.bubblewrap = "bwrap: No permissions to create new namespace";
  facts.compiler_version.clear();
  facts.torch_version.clear();
  for (const char* subject : {"namespaces", "bubblewrap", "compiler", "torch"}) {
    INFO(subject);
    CHECK(About(facts, subject).level == Level::kFailure);
    CHECK_FALSE(About(facts, subject).remedy.empty());
  }
}

TEST_CASE("What only makes a run worse is a warning with a remedy") {
  SystemFacts facts = FitMachine();
  facts.memory_available_gb = 1;
  facts.disk_free_gb = 1;
  facts.landlock_abi = 0;
  facts.realtime = "SCHED_FIFO: Operation not permitted";
  facts.perf_event = "perf_event_open: Permission denied";
  facts.has_nvidia_device = true;
  for (const char* subject : {"memory", "disk", "landlock", "real time", "perf events", "gpu"}) {
    INFO(subject);
    CHECK(About(facts, subject).level == Level::kWarning);
    CHECK_FALSE(About(facts, subject).remedy.empty());
  }
}

TEST_CASE("A GPU is told with its driver and memory, and an old driver or no lease is a warning") {
  SystemFacts facts = FitMachine();
  facts.has_nvidia_device = true;
  facts.nvcc_version = "13.0.88";
  facts.gpus = {{"NVIDIA H200", "580.159.04", 4, 143771}, {"NVIDIA H100", "550.1", 0, 81559}};
  facts.lease = "/run/lock: Permission denied";
  CHECK(About(facts, "gpu 0").text == "NVIDIA H200, driver 580.159.04, 4 of 143771 MiB in use");
  CHECK(About(facts, "gpu 0").level == Level::kGood);
  CHECK(About(facts, "gpu 1").level == Level::kWarning);
  CHECK_THAT(About(facts, "gpu 1").remedy, Catch::Contains("580 or later"));
  CHECK(About(facts, "gpu lease").level == Level::kWarning);
}

TEST_CASE("Ubuntu's and Debian's restrictions of user namespaces are told by their own settings") {
  SystemFacts facts = FitMachine();
  facts.user_namespace = "user namespace: Permission denied";
  facts.apparmor_restricts = true;
  CHECK_THAT(About(facts, "namespaces").remedy,
             Catch::Contains("kernel.apparmor_restrict_unprivileged_userns=0"));
  facts.apparmor_restricts = false;
  facts.clone_forbidden = true;
  CHECK_THAT(About(facts, "namespaces").remedy, Catch::Contains("kernel.unprivileged_userns_clone=1"));
}

TEST_CASE("Without bubblewrap the remedy is its package") {
  SystemFacts facts = FitMachine();
  facts.bubblewrap_installed = false;
  CHECK_THAT(About(facts, "bubblewrap").remedy, Catch::Contains("apt-get install bubblewrap"));
}

}  // namespace
}  // namespace warpsmith
