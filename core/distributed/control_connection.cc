#include "core/distributed/control_connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Precedes the text and the bytes of a frame, in the byte order of the machine: all ranks run one build.
struct Header {
  int32_t kind;
  int32_t text_bytes;
  int64_t number;
  int64_t num_bytes;
};

constexpr size_t kTextBytesMax = size_t{1} << 16;
constexpr int64_t kFrameBytesMax = int64_t{1} << 36;
constexpr size_t kReceiveBytes = size_t{1} << 16;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

absl::Status Closed() { return absl::UnavailableError("it closed its connection"); }

}  // namespace

void ControlConnection::Close() {
  fd_.Reset();
  outbox_.clear();
}

void ControlConnection::FinishSending() {
  if (fd_.valid()) shutdown(fd_.get(), SHUT_WR);
}

void ControlConnection::Queue(const ControlFrame& frame) {
  if (!fd_.valid()) return;
  const std::string text = frame.text.substr(0, kTextBytesMax);
  const Header header{.kind = static_cast<int32_t>(frame.kind),
                      .text_bytes = static_cast<int32_t>(text.size()),
                      .number = frame.number,
                      .num_bytes = frame.bytes ? static_cast<int64_t>(frame.bytes->size()) : 0};
  std::string head(reinterpret_cast<const char*>(&header), sizeof(header));
  outbox_.push_back(std::make_shared<const std::string>(head + text));
  if (header.num_bytes > 0) outbox_.push_back(frame.bytes);
}

absl::Status ControlConnection::SendSome() {
  while (!outbox_.empty()) {
    const std::string& first = *outbox_.front();
    const ssize_t count =
        send(fd_.get(), first.data() + num_sent_, first.size() - num_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && WouldBlock()) return absl::OkStatus();
    if (count < 0 && (errno == EPIPE || errno == ECONNRESET)) return Closed();
    if (count < 0) return ErrnoStatus("cannot send to", "a peer");
    num_sent_ += static_cast<size_t>(count);
    if (num_sent_ < first.size()) continue;
    outbox_.pop_front();
    num_sent_ = 0;
  }
  return absl::OkStatus();
}

absl::Status ControlConnection::ReceiveSome(std::vector<ControlFrame>& frames) {
  std::array<char, kReceiveBytes> buffer;
  while (true) {
    const ssize_t count = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && WouldBlock()) return TakeFrames(frames);
    if (count <= 0) {
      RETURN_IF_ERROR(TakeFrames(frames));
      return count == 0 || errno == ECONNRESET ? Closed() : ErrnoStatus("cannot receive from", "a peer");
    }
    inbox_.append(buffer.data(), static_cast<size_t>(count));
  }
}

absl::Status ControlConnection::TakeFrames(std::vector<ControlFrame>& frames) {
  size_t taken = 0;
  while (inbox_.size() - taken >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, inbox_.data() + taken, sizeof(header));
    if (header.kind < 1 || header.kind > 3 || header.text_bytes < 0 || header.num_bytes < 0 ||
        header.num_bytes > kFrameBytesMax) {
      return absl::InternalError(absl::StrCat("it sent a malformed frame of kind ", header.kind));
    }
    const size_t text_begin = taken + sizeof(header);
    const size_t bytes_begin = text_begin + static_cast<size_t>(header.text_bytes);
    const size_t end = bytes_begin + static_cast<size_t>(header.num_bytes);
    if (inbox_.size() < end) break;
    frames.push_back({.kind = static_cast<ControlFrame::Kind>(header.kind),
                      .number = header.number,
                      .text = inbox_.substr(text_begin, bytes_begin - text_begin),
                      .bytes = std::make_shared<const std::string>(inbox_, bytes_begin, end - bytes_begin)});
    taken = end;
  }
  inbox_.erase(0, taken);
  return absl::OkStatus();
}

}  // namespace warpsmith
