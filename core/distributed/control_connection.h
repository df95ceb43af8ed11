// Frames between two processes of a run over one connection of the control plane.
#ifndef WARPSMITH_CORE_DISTRIBUTED_CONTROL_CONNECTION_H_
#define WARPSMITH_CORE_DISTRIBUTED_CONTROL_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

struct ControlFrame {
  enum class Kind : int32_t {
    kBeat = 1,  // `text` is what the sender is doing, `number` for how many milliseconds
    kPart = 2,  // `text` names exchange number `number`, `bytes` is the sender's part or the answer
    kEnd = 3,   // the sender ends: `number` is a status code, `text` the reason
  };

  Kind kind = Kind::kBeat;
  int64_t number = 0;
  std::string text;
  std::shared_ptr<const std::string> bytes;  // null for none; shared, because rank 0 sends it to many
};

// A connected stream socket that carries frames both ways and never blocks. One thread at a time.
class ControlConnection {
 public:
  explicit ControlConnection(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  bool open() const { return fd_.valid(); }
  void Close();

  // Ends the sending half: the peer reads what was sent, then the end.
  void FinishSending();

  void Queue(const ControlFrame& frame);

  // Nothing is left to send.
  bool idle() const { return outbox_.empty(); }

  // Sends until nothing is left or the socket is full. UNAVAILABLE when the peer has closed.
  absl::Status SendSome();

  // Appends to `frames` what has come. UNAVAILABLE when the peer has closed, INTERNAL for bytes that are no
  // frame; frames before that are in `frames` all the same.
  absl::Status ReceiveSome(std::vector<ControlFrame>& frames);

 private:
  absl::Status TakeFrames(std::vector<ControlFrame>& frames);

  UniqueFd fd_;
  std::deque<std::shared_ptr<const std::string>> outbox_;
  size_t num_sent_ = 0;  // of the first of the outbox
  std::string inbox_;    // bytes of a frame that is not complete
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_CONTROL_CONNECTION_H_
