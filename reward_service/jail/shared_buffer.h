// Memory that the referee shares with an oracle or a jail, by descriptor.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_SHARED_BUFFER_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_SHARED_BUFFER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// A sealed memory file of fixed size, mapped here with every page present, huge where the kernel makes such.
// Thread-safe as memory is.
class SharedBuffer {
 public:
  // Zero bytes inside. RESOURCE_EXHAUSTED when there is no memory.
  static absl::StatusOr<std::unique_ptr<SharedBuffer>> Create(int64_t num_bytes);

  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  // `value` into every byte, and 0 behind them to the file's end, where whoever maps it may write, too.
  void Fill(unsigned char value);

  char* data() const { return data_; }
  int64_t num_bytes() const { return num_bytes_; }
  int fd() const { return fd_.get(); }
  // The same memory through a descriptor that cannot be mapped for writing.
  int read_only_fd() const { return read_only_fd_.get(); }

 private:
  SharedBuffer() = default;

  UniqueFd fd_;
  UniqueFd read_only_fd_;
  char* data_ = nullptr;
  int64_t num_bytes_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_SHARED_BUFFER_H_
