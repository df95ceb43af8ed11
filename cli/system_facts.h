// What this machine offers, found out by trying.
#ifndef WARPSMITH_CLI_SYSTEM_FACTS_H_
#define WARPSMITH_CLI_SYSTEM_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace warpsmith {

// The outcome of one attempt: empty when it worked, else the reason in words.
using Obstacle = std::optional<std::string>;

struct GpuFact {
  std::string name;
  std::string driver;  // "580.65.06"
  int64_t used_mib = 0;
  int64_t total_mib = 0;
};

struct SystemFacts {
  std::string distribution;  // PRETTY_NAME of /etc/os-release
  std::string cpu_model;
  int num_cores = 0;
  double memory_available_gb = 0;
  double disk_free_gb = 0;  // where the programs lie
  std::string disk_path;

  Obstacle bubblewrap;  // running `bwrap` with its own namespaces
  bool bubblewrap_installed = false;
  Obstacle user_namespace;          // unshare(CLONE_NEWUSER)
  bool apparmor_restricts = false;  // kernel.apparmor_restrict_unprivileged_userns, Ubuntu 24.04
  bool clone_forbidden = false;     // kernel.unprivileged_userns_clone is 0, Debian
  int landlock_abi = 0;             // 0: none
  Obstacle realtime;                // SCHED_FIFO at priority 1
  Obstacle perf_event;              // a software clock on a process of ours

  std::string compiler_version;  // of g++; empty: none
  std::string python;            // interpreter chosen at build time
  std::string torch_version;     // as it imports there; empty: it does not
  bool has_nvidia_device = false;
  std::vector<GpuFact> gpus;  // as nvidia-smi lists them; empty: it does not answer
  Obstacle lease;             // writing to the folder of GPUs' leases
  std::string nvcc_version;   // empty: none
};

// Tries everything; takes a few seconds, for Torch is imported once. Each attempt is bounded.
SystemFacts GatherSystemFacts();

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_SYSTEM_FACTS_H_
