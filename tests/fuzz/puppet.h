// A process that answers a referee with given bytes: what a jail could say if its candidate had taken it
// over.
#ifndef WARPSMITH_TESTS_FUZZ_PUPPET_H_
#define WARPSMITH_TESTS_FUZZ_PUPPET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/unique_fd.h"
#include "reward_service/referee/process/child_process.h"

namespace warpsmith {

// Makes puppets from a process of its own, forked while this one was small and had one thread. Never
// destroyed.
class PuppetMaster {
 public:
  PuppetMaster();

  // A child of this process that says hello, then answers each packet with the next line of `lines` as JSON,
  // and ends after the last. At most 64 KiB of lines.
  std::unique_ptr<ChildProcess> Make(const std::string& lines) const;

  // An address at which every puppet has 1 MiB that can be read.
  uint64_t memory() const { return memory_; }

 private:
  UniqueFd control_;
  uint64_t memory_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_FUZZ_PUPPET_H_
