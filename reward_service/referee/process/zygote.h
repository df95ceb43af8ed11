// The two zygotes of a referee: one forks native jails, one forks oracles and Python jails.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_ZYGOTE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_ZYGOTE_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/referee/process/child_process.h"
#include "reward_service/sandbox/sandbox.h"

namespace warpsmith {

struct ChildRights {
  std::string role;  // of zygote::Fork; without meaning for native jails
  int64_t memory_bytes_max = 0;
  int cpu_seconds_max = 0;
  int num_threads = 1;  // that the code should use
  // The only code that can ever run there is what the zygote had mapped and what was compiled from the
  // candidate's own sources: no other file is executable, and no other memory can be made so.
  bool sealed = false;
  // Libraries may copy tensors within one dtype. REQUIRES: the Python kind, and sealed.
  bool copies = false;
  bool gpu = false;  // of a zygote that has one
  // By which launches reach a GPU; the driver's own choice is 8. It makes one context at a time for all processes of a
  // host, and sooner with fewer queues: 1.5 times as many with one as with two. Kernels of four streams take 1.4 times
  // as long with two as with four.
  int launch_queues = 1;
  // Of the Python kind, with a GPU and not sealed: compilers may run there, and what they make.
  bool compiles = false;
  // Of the Python kind and sealed: nothing can be read but the standard library, Torch without its own Triton kernels,
  // and Triton, also where there is no GPU. What Triton makes kernels of there is the program's own.
  bool records = false;

  bool operator==(const ChildRights&) const = default;
};

// The GPU that a zygote's children may open, each for itself.
struct GpuAccess {
  std::string uuid;
  std::filesystem::path driver;   // libcuda's file
  std::filesystem::path runtime;  // libcudart's, to which candidates are linked
  // CUPTI's, by which children tell what they launch; empty where there is none.
  std::filesystem::path profiler = {};
  // Further ones that candidates may use, each behind those that it needs.
  std::vector<std::filesystem::path> libraries = {};
};

class Zygote;

// One that runs and imports Torch.
struct WarmingZygote {
  std::unique_ptr<Zygote> zygote;  // which is not used yet
  UniqueFd words;                  // what it says of its failure

  // The zygote, once it can be used. FAILED_PRECONDITION with its words where it does not get so far.
  absl::StatusOr<std::unique_ptr<Zygote>> Await() &&;
};

// Thread-safe.
class Zygote {
 public:
  // Whether a child that was asked for ahead is followed by another: not beside whoever is timed.
  enum class Spares { kRefilled, kUsedUp };
  // Says whether libraries may do products of matrices and convolutions in sealed jails, too.
  enum class Products { kWithheld, kByLibraries };

  // Confined start of warpsmith-jail. Call from a thread that lives as long as the referee: the sandbox dies
  // with it.
  static absl::StatusOr<std::unique_ptr<Zygote>> StartNative(
      const std::filesystem::path& bin_directory, const std::optional<GpuAccess>& gpu = std::nullopt);
  // Confined start of Python with Torch; returns when Torch is imported. `read_only_paths`: what the
  // interpreter needs. From a thread as above.
  static absl::StatusOr<std::unique_ptr<Zygote>> StartPython(
      const std::filesystem::path& python, const std::filesystem::path& share_directory,
      const std::vector<std::filesystem::path>& read_only_paths, int num_threads,
      const std::optional<GpuAccess>& gpu = std::nullopt, Products products = Products::kWithheld);
  // The same, of which the caller awaits the end, and does something else meanwhile: it takes seconds.
  static absl::StatusOr<WarmingZygote> BeginPython(const std::filesystem::path& python,
                                                   const std::filesystem::path& share_directory,
                                                   const std::vector<std::filesystem::path>& read_only_paths,
                                                   int num_threads, const std::optional<GpuAccess>& gpu,
                                                   Products products = Products::kWithheld);

  // Asks for a child; returns at once, before it runs. ChildProcess::AwaitHello waits for it.
  absl::StatusOr<std::unique_ptr<ChildProcess>> Fork(const ChildRights& rights) ABSL_LOCKS_EXCLUDED(mutex_);

  // As Fork(), but gives a child that was asked for earlier where one has the same rights, and where spares are
  // refilled asks for the next: on the average nobody waits. Keeps some for each of the two kinds of rights that were
  // used last.
  absl::StatusOr<std::unique_ptr<ChildProcess>> ForkWithSpare(const ChildRights& rights,
                                                              Spares spares = Spares::kRefilled)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when one with these rights has entered its jail, if any was asked for: ForkWithSpare() gives it without a
  // wait. At the latest by `deadline`.
  void AwaitSpare(const ChildRights& rights, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when all that were asked for have entered their jails, and none of these opens a GPU any more: not those
  // that others ask for meanwhile, which may be so many that it never ends. Whoever has not by `deadline`, or could
  // not, is ended.
  void AwaitSpares(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // As Fork(), after the end of all children that were asked for earlier and that nobody has been given.
  absl::StatusOr<std::unique_ptr<ChildProcess>> ForkWithoutSpares(const ChildRights& rights)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& torch_version() const { return torch_version_; }
  // That programs with a GPU can import; empty where there is none.
  const std::string& triton_version() const { return triton_version_; }
  // As torch.backends.cpu.get_cpu_capability() says inside: the eager reference runs kernels of this kind.
  const std::string& torch_cpu_capability() const { return torch_cpu_capability_; }

 private:
  friend struct WarmingZygote;
  Zygote(SandboxedProcess process, UniqueFd socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}
  absl::StatusOr<std::unique_ptr<ChildProcess>> ForkLocked(const ChildRights& rights)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CollectAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SandboxedProcess process_;
  UniqueFd socket_;
  std::shared_ptr<const PermittedCode> code_;
  std::shared_ptr<const PermittedCode> code_with_copies_;
  const std::shared_ptr<Reaper> reaper_ = std::make_shared<Reaper>();
  std::string torch_version_;
  std::string triton_version_;
  std::string torch_cpu_capability_;
  absl::Mutex mutex_;
  // From anywhere: several referees on a machine take uids of one range.
  uint32_t num_forks_ ABSL_GUARDED_BY(mutex_) = std::random_device()();
  int num_unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  struct SparesOfKind {
    ChildRights rights;
    std::deque<std::unique_ptr<ChildProcess>> children;
    size_t num_awaited = 0;  // beside these, by AwaitSpares()
  };
  size_t NumUnready() ABSL_LOCKS_EXCLUDED(mutex_);
  SparesOfKind* FindSpares(const ChildRights& rights) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One that may still be about to enter its jail, of `only` where it is not null, with its rights; null where there is
  // none, or of `only` one that is ready.
  std::unique_ptr<ChildProcess> TakeUnready(const ChildRights* only, ChildRights* rights)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void PutBack(std::unique_ptr<ChildProcess> child, const ChildRights& rights) ABSL_LOCKS_EXCLUDED(mutex_);
  std::deque<SparesOfKind> spares_ ABSL_GUARDED_BY(mutex_);  // those used last come first
};

// Folders that a Python interpreter and its torch need, asked of it.
absl::StatusOr<std::vector<std::filesystem::path>> PythonFolders(const std::filesystem::path& python);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_ZYGOTE_H_
