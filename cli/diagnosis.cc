#include "cli/diagnosis.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace warpsmith {
namespace {

using Level = Finding::Level;

constexpr double kMemoryNeededGb = 4;
constexpr double kDiskNeededGb = 4;

Finding Good(std::string subject, std::string text) {
  return {Level::kGood, std::move(subject), std::move(text), ""};
}

Finding Machine(const SystemFacts& facts) {
  return Good("machine",
              absl::StrCat(facts.distribution, ", ", facts.cpu_model, ", ", facts.num_cores, " cores"));
}

Finding Memory(const SystemFacts& facts) {
  Finding finding = Good("memory", absl::StrFormat("%.1f GB available", facts.memory_available_gb));
  if (facts.memory_available_gb < kMemoryNeededGb) {
    finding.level = Level::kWarning;
    finding.remedy =
        absl::StrFormat("end other programs, or add memory: the demo uses up to %.0f GB", kMemoryNeededGb);
  }
  return finding;
}

Finding Disk(const SystemFacts& facts) {
  Finding finding = Good("disk", absl::StrFormat("%.1f GB free at %s", facts.disk_free_gb, facts.disk_path));
  if (facts.disk_free_gb < kDiskNeededGb) {
    finding.level = Level::kWarning;
    finding.remedy =
        absl::StrFormat("free %.0f GB: checkpoints, logs and compiled candidates lie there", kDiskNeededGb);
  }
  return finding;
}

Finding UserNamespaces(const SystemFacts& facts) {
  if (!facts.user_namespace.has_value()) return Good("namespaces", "user namespaces work");
  Finding finding{Level::kFailure, "namespaces", *facts.user_namespace,
                  "run as root, or in a container that allows them"};
  if (facts.apparmor_restricts) {
    finding.remedy =
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04 restricts them), or an "
        "AppArmor profile for bwrap that says 'userns,'";
  } else if (facts.clone_forbidden) {
    finding.remedy = "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  }
  return finding;
}

Finding Bubblewrap(const SystemFacts& facts) {
  if (!facts.bubblewrap_installed) {
    return {Level::kFailure, "bubblewrap", "there is no bwrap", "sudo apt-get install bubblewrap"};
  }
  if (!facts.bubblewrap.has_value()) return Good("bubblewrap", "confines a program");
  return {Level::kFailure, "bubblewrap", *facts.bubblewrap,
          "see 'namespaces' above; in a container add --security-opt seccomp=unconfined --security-opt "
          "apparmor=unconfined --security-opt systempaths=unconfined; in a plain chroot it cannot work"};
}

Finding Landlock(const SystemFacts& facts) {
  if (facts.landlock_abi > 0) return Good("landlock", absl::StrCat("ABI ", facts.landlock_abi));
  return {Level::kWarning, "landlock", "the kernel has none; bubblewrap and seccomp confine alone",
          "boot a kernel of 5.13 or later with lsm=landlock,..."};
}

Finding Realtime(const SystemFacts& facts) {
  if (!facts.realtime.has_value()) return Good("real time", "SCHED_FIFO is granted");
  return {Level::kWarning, "real time", absl::StrCat(*facts.realtime, "; timings will be marked best_effort"),
          "run as root, or give rtprio 20 to your user in /etc/security/limits.conf; in a container "
          "--cap-add=SYS_NICE"};
}

Finding Perf(const SystemFacts& facts) {
  if (!facts.perf_event.has_value()) return Good("perf events", "a process can be sampled");
  return {Level::kWarning, "perf events", absl::StrCat(*facts.perf_event, "; profiles fall back to ptrace"),
          "sudo sysctl -w kernel.perf_event_paranoid=1; in a container --cap-add=PERFMON"};
}

Finding Compiler(const SystemFacts& facts) {
  if (!facts.compiler_version.empty()) return Good("compiler", absl::StrCat("g++ ", facts.compiler_version));
  return {Level::kFailure, "compiler", "there is no g++: candidates cannot be compiled",
          "sudo apt-get install g++"};
}

Finding Torch(const SystemFacts& facts) {
  if (!facts.torch_version.empty())
    return Good("torch", absl::StrCat(facts.torch_version, " in ", facts.python));
  return {Level::kFailure, "torch", absl::StrCat(facts.python, " does not import torch"),
          "./dev build, which installs it, or set WARPSMITH_TORCH_DIR and build again"};
}

Finding Gpu(const SystemFacts& facts) {
  if (!facts.has_nvidia_device) return Good("gpu", "none: C++ candidates, timed on the CPU");
  if (!facts.nvcc_version.empty()) return Good("gpu", absl::StrCat("NVIDIA, nvcc ", facts.nvcc_version));
  return {Level::kWarning, "gpu", "NVIDIA, but no nvcc", "./dev build cuda installs one"};
}

// CUDA 13 wants a driver of this version or a later one.
constexpr int kDriverWanted = 580;

std::vector<Finding> EachGpu(const SystemFacts& facts) {
  std::vector<Finding> findings;
  for (size_t i = 0; i < facts.gpus.size(); ++i) {
    const GpuFact& gpu = facts.gpus[i];
    Finding finding =
        Good(absl::StrCat("gpu ", i), absl::StrCat(gpu.name, ", driver ", gpu.driver, ", ", gpu.used_mib,
                                                   " of ", gpu.total_mib, " MiB in use"));
    if (std::atoi(gpu.driver.c_str()) < kDriverWanted) {
      finding.level = Level::kWarning;
      finding.remedy = absl::StrCat("update the driver to ", kDriverWanted, " or later, which CUDA 13 wants");
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

Finding Lease(const SystemFacts& facts) {
  if (!facts.lease.has_value())
    return Good("gpu lease", "trainer, worker and referee can take turns on a GPU");
  return {Level::kWarning, "gpu lease",
          absl::StrCat(*facts.lease, "; a referee's times are wrong while other processes compute"),
          "run as root, or let your user write to /run/lock"};
}

const char* Mark(Level level) {
  switch (level) {
    case Level::kGood:
      return "ok  ";
    case Level::kWarning:
      return "warn";
    case Level::kFailure:
      return "FAIL";
  }
  return "";
}

}  // namespace

std::vector<Finding> Diagnose(const SystemFacts& facts) {
  std::vector<Finding> findings = {Machine(facts),    Memory(facts),   Disk(facts),     UserNamespaces(facts),
                                   Bubblewrap(facts), Landlock(facts), Realtime(facts), Perf(facts),
                                   Compiler(facts),   Torch(facts),    Gpu(facts)};
  if (!facts.has_nvidia_device) return findings;
  for (Finding& finding : EachGpu(facts)) findings.push_back(std::move(finding));
  findings.push_back(Lease(facts));
  return findings;
}

int RunDoctor() {
  const std::vector<Finding> findings = Diagnose(GatherSystemFacts());
  for (const Finding& finding : findings) {
    std::cout << absl::StrFormat("%s  %-12s %s\n", Mark(finding.level), finding.subject, finding.text);
    if (!finding.remedy.empty()) std::cout << absl::StrFormat("      %-12s -> %s\n", "", finding.remedy);
  }
  const bool failed = std::any_of(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.level == Level::kFailure; });
  std::cout << (failed ? "This machine cannot run Warpsmith yet.\n" : "This machine can run Warpsmith.\n");
  return failed ? 1 : 0;
}

}  // namespace warpsmith
