#include "core/distributed/peer_exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Precedes the bytes of every transfer, so that ranks that have lost step find out.
struct Header {
  ExchangeTag tag;
  int64_t num_bytes;
};
constexpr int64_t kHeaderBytes = sizeof(Header);

// A transfer under way. Progress counts header and payload together.
struct Stream {
  int rank;
  int fd;
  PeerTransfer transfer;
  Header out;
  Header in;
  int64_t num_sent = 0;
  int64_t num_received = 0;

  bool sent() const { return num_sent == kHeaderBytes + transfer.send_bytes; }
  bool received() const { return num_received == kHeaderBytes + transfer.receive_bytes; }
};

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

absl::Status PeerGone(const Stream& stream) {
  return absl::UnavailableError(absl::StrCat("rank ", stream.rank, " closed its connection; see its log"));
}

absl::Status SendSome(Stream& stream) {
  while (!stream.sent()) {
    const bool in_header = stream.num_sent < kHeaderBytes;
    const char* from = in_header
                           ? reinterpret_cast<const char*>(&stream.out) + stream.num_sent
                           : static_cast<const char*>(stream.transfer.send) + stream.num_sent - kHeaderBytes;
    const int64_t left =
        (in_header ? kHeaderBytes : kHeaderBytes + stream.transfer.send_bytes) - stream.num_sent;
    const ssize_t count = send(stream.fd, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && WouldBlock()) return absl::OkStatus();
    if (count < 0 && (errno == EPIPE || errno == ECONNRESET)) return PeerGone(stream);
    if (count < 0) return ErrnoStatus("cannot send to rank", absl::StrCat(stream.rank));
    stream.num_sent += count;
  }
  return absl::OkStatus();
}

absl::Status CheckHeader(const Stream& stream) {
  const ExchangeTag& theirs = stream.in.tag;
  const ExchangeTag& ours = stream.out.tag;
  const bool same_place =
      theirs.sequence == ours.sequence && theirs.operation == ours.operation && theirs.step == ours.step;
  if (same_place && stream.in.num_bytes == stream.transfer.receive_bytes) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("ranks have lost step: rank ", stream.rank, " is in collective #", theirs.sequence,
                   " (operation ", theirs.operation, ", step ", theirs.step, ") sending ",
                   stream.in.num_bytes, " bytes; this rank is in #", ours.sequence, " (operation ",
                   ours.operation, ", step ", ours.step, ") expecting ", stream.transfer.receive_bytes));
}

absl::Status ReceiveSome(Stream& stream) {
  while (!stream.received()) {
    const bool in_header = stream.num_received < kHeaderBytes;
    char* to = in_header ? reinterpret_cast<char*>(&stream.in) + stream.num_received
                         : static_cast<char*>(stream.transfer.receive) + stream.num_received - kHeaderBytes;
    const int64_t left =
        (in_header ? kHeaderBytes : kHeaderBytes + stream.transfer.receive_bytes) - stream.num_received;
    const ssize_t count = recv(stream.fd, to, left, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno == ECONNRESET)) return PeerGone(stream);
    if (count < 0 && WouldBlock()) return absl::OkStatus();
    if (count < 0) return ErrnoStatus("cannot receive from rank", absl::StrCat(stream.rank));
    stream.num_received += count;
    if (in_header && stream.num_received == kHeaderBytes) RETURN_IF_ERROR(CheckHeader(stream));
  }
  return absl::OkStatus();
}

std::vector<Stream> OpenStreams(absl::Span<const UniqueFd> peers, absl::Span<const PeerTransfer> transfers,
                                ExchangeTag tag) {
  std::vector<Stream> streams;
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    if (!peers[rank].valid()) continue;
    streams.push_back(Stream{.rank = static_cast<int>(rank),
                             .fd = peers[rank].get(),
                             .transfer = transfers[rank],
                             .out = {.tag = tag, .num_bytes = transfers[rank].send_bytes},
                             .in = {}});
  }
  return streams;
}

// Waits until a stream can go on. Entry i of `waiting` belongs to stream i; the last one is the interrupt.
absl::Status WaitForProgress(const std::vector<Stream>& streams, int interrupt_fd,
                             std::vector<pollfd>& waiting) {
  waiting.clear();
  for (const Stream& stream : streams) {
    const short events = static_cast<short>((stream.sent() ? 0 : POLLOUT) | (stream.received() ? 0 : POLLIN));
    waiting.push_back({.fd = events == 0 ? -1 : stream.fd, .events = events, .revents = 0});
  }
  waiting.push_back({.fd = interrupt_fd, .events = POLLIN, .revents = 0});
  // Bounded by the watchdog, which makes interrupt_fd readable at the deadline.
  if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
    return ErrnoStatus("cannot", "poll peers");
  if (waiting.back().revents != 0) return absl::AbortedError("interrupted");
  return absl::OkStatus();
}

bool Finished(const Stream& stream) { return stream.sent() && stream.received(); }

}  // namespace

absl::Status Exchange(absl::Span<const UniqueFd> peers, absl::Span<const PeerTransfer> transfers,
                      ExchangeTag tag, int interrupt_fd) {
  WS_CHECK(peers.size() == transfers.size())
      << peers.size() << " peers, " << transfers.size() << " transfers";
  std::vector<Stream> streams = OpenStreams(peers, transfers, tag);
  std::vector<pollfd> waiting;
  while (!std::all_of(streams.begin(), streams.end(), Finished)) {
    RETURN_IF_ERROR(WaitForProgress(streams, interrupt_fd, waiting));
    for (size_t i = 0; i < streams.size(); ++i) {
      if (waiting[i].revents & (POLLIN | POLLHUP | POLLERR)) RETURN_IF_ERROR(ReceiveSome(streams[i]));
      if (waiting[i].revents & (POLLOUT | POLLERR)) RETURN_IF_ERROR(SendSome(streams[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
