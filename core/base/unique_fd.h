// Owner of one file descriptor.
#ifndef WARPSMITH_CORE_BASE_UNIQUE_FD_H_
#define WARPSMITH_CORE_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace warpsmith {

// Closes its descriptor on destruction. Not thread-safe; movable, not copyable.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // Gives the descriptor up; the caller closes it.
  int Release() { return std::exchange(fd_, -1); }

  // Closes the present descriptor and takes `fd`.
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_UNIQUE_FD_H_
