// A start page as a process of a program has it.
#ifndef WARPSMITH_TESTS_SUPPORT_MAPPED_START_PAGE_H_
#define WARPSMITH_TESTS_SUPPORT_MAPPED_START_PAGE_H_

#include <sys/mman.h>

#include "core/base/check.h"
#include "reward_service/referee/process/start_line.h"

namespace warpsmith {

class MappedStartPage {
 public:
  explicit MappedStartPage(const StartLine& line)
      : mapped_(mmap(nullptr, kStartPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, line.fd(), 0)) {
    WS_CHECK(mapped_ != MAP_FAILED);
  }
  ~MappedStartPage() { munmap(mapped_, kStartPageBytes); }
  MappedStartPage(const MappedStartPage&) = delete;
  MappedStartPage& operator=(const MappedStartPage&) = delete;

  StartPage* operator->() const { return static_cast<StartPage*>(mapped_); }

 private:
  void* const mapped_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_MAPPED_START_PAGE_H_
