// What a call launches on a GPU, added up kernel by kernel.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_LAUNCHES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_LAUNCHES_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace warpsmith {

// Launches that differ in any of these are told apart.
struct KernelLaunch {
  std::string symbol;  // as the compiler wrote it
  std::array<int64_t, 3> grid{};
  std::array<int64_t, 3> block{};
  int64_t registers = 0;     // of a thread
  int64_t shared_bytes = 0;  // of a block, static and dynamic together

  std::strong_ordering operator<=>(const KernelLaunch&) const = default;
};

class Launches {
 public:
  // A negative time counts as 0: the kernel had not ended.
  void AddKernel(const KernelLaunch& launch, int64_t nanoseconds);
  // A copy or a fill.
  void AddOther() { ++num_launches_; }

  // The message jail::Profiled: the kernels that took the longest, all launches of each together, by the names that
  // people know them by; the first jail::Profiled::kernels.num_max of them. The number of launches is that of all.
  nlohmann::json ToMessage() const;

 private:
  struct Sum {
    int64_t num_launches = 0;
    int64_t nanoseconds = 0;
  };

  std::map<KernelLaunch, Sum> kernels_;
  int64_t num_launches_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_LAUNCHES_H_
