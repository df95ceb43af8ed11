#include "core/distributed/tcp_communicator.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/distributed/peer_exchange.h"
#include "core/distributed/peer_mesh.h"

namespace warpsmith {
namespace {

// Operation codes of ExchangeTag.
enum Operation : int32_t { kAllReduce = 1, kBroadcast = 2, kAllGather = 3, kBarrier = 4 };

// First element of slice `rank` of `count` elements in `size` nearly equal slices.
int64_t SliceStart(int64_t count, int rank, int size) { return count * rank / size; }

template <typename T>
void AddInto(T* sum, const T* addend, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += addend[i];
}

void AddInto(char* sum, const char* addend, int64_t count, ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return AddInto(reinterpret_cast<float*>(sum), reinterpret_cast<const float*>(addend), count);
    case ElementType::kFloat64:
      return AddInto(reinterpret_cast<double*>(sum), reinterpret_cast<const double*>(addend), count);
    case ElementType::kInt64:
      return AddInto(reinterpret_cast<int64_t*>(sum), reinterpret_cast<const int64_t*>(addend), count);
  }
}

// Makes an eventfd readable.
void Notify(const UniqueFd& event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event.get(), &one, sizeof(one));
}

class TcpBackend : public CollectiveBackend {
 public:
  TcpBackend(int rank, std::vector<UniqueFd> peers, UniqueFd interrupt)
      : rank_(rank), peers_(std::move(peers)), interrupt_(std::move(interrupt)) {}

  absl::Status AllReduceSum(void* data, int64_t count, ElementType type, int64_t sequence) override;
  absl::Status Broadcast(void* data, int64_t num_bytes, int root, int64_t sequence) override;
  absl::Status AllGather(const void* send, void* receive, int64_t num_bytes, int64_t sequence) override;
  absl::Status Barrier(int64_t sequence) override;
  void Interrupt() override;

 private:
  int size() const { return static_cast<int>(peers_.size()); }
  absl::Status RunExchange(ExchangeTag tag, const std::vector<PeerTransfer>& transfers);

  const int rank_;
  const std::vector<UniqueFd> peers_;  // by rank; own entry not valid
  const UniqueFd interrupt_;           // eventfd, readable once interrupted
  std::vector<char> scratch_;          // the other ranks' parts of this rank's slice
};

absl::Status TcpBackend::AllReduceSum(void* data, int64_t count, ElementType type, int64_t sequence) {
  const int64_t element_bytes = ElementBytes(type);
  char* bytes = static_cast<char*>(data);
  const int64_t own_start = SliceStart(count, rank_, size());
  const int64_t own_count = SliceStart(count, rank_ + 1, size()) - own_start;
  const int64_t own_bytes = own_count * element_bytes;
  char* own = bytes + own_start * element_bytes;

  // Step 0: each rank sends me its part of my slice. Step 1: my sum goes to each rank.
  scratch_.resize(static_cast<size_t>(own_bytes) * size());
  std::vector<PeerTransfer> scatter(size());
  std::vector<PeerTransfer> gather(size());
  for (int peer = 0; peer < size(); ++peer) {
    const int64_t start = SliceStart(count, peer, size());
    const int64_t slice_bytes = (SliceStart(count, peer + 1, size()) - start) * element_bytes;
    char* slice = bytes + start * element_bytes;
    scatter[peer] = {slice, slice_bytes, scratch_.data() + peer * own_bytes, own_bytes};
    gather[peer] = {own, own_bytes, slice, slice_bytes};
  }
  RETURN_IF_ERROR(RunExchange({sequence, kAllReduce, 0}, scatter));
  std::memcpy(scratch_.data() + rank_ * own_bytes, own, own_bytes);
  std::memcpy(own, scratch_.data(), own_bytes);
  for (int peer = 1; peer < size(); ++peer) AddInto(own, scratch_.data() + peer * own_bytes, own_count, type);
  return RunExchange({sequence, kAllReduce, 1}, gather);
}

absl::Status TcpBackend::Broadcast(void* data, int64_t num_bytes, int root, int64_t sequence) {
  std::vector<PeerTransfer> transfers(size());
  if (rank_ == root) {
    for (PeerTransfer& transfer : transfers) transfer = {data, num_bytes, nullptr, 0};
  } else {
    transfers[root] = {nullptr, 0, data, num_bytes};
  }
  return RunExchange({sequence, kBroadcast, 0}, transfers);
}

absl::Status TcpBackend::AllGather(const void* send, void* receive, int64_t num_bytes, int64_t sequence) {
  char* parts = static_cast<char*>(receive);
  std::vector<PeerTransfer> transfers(size());
  for (int peer = 0; peer < size(); ++peer) {
    transfers[peer] = {send, num_bytes, parts + peer * num_bytes, num_bytes};
  }
  std::memmove(parts + rank_ * num_bytes, send, num_bytes);
  return RunExchange({sequence, kAllGather, 0}, transfers);
}

absl::Status TcpBackend::Barrier(int64_t sequence) {
  return RunExchange({sequence, kBarrier, 0}, std::vector<PeerTransfer>(size()));
}

void TcpBackend::Interrupt() {
  Notify(interrupt_);
  for (const UniqueFd& peer : peers_) {
    if (peer.valid()) shutdown(peer.get(), SHUT_RDWR);  // so that peers fail now and not at their deadline
  }
}

absl::Status TcpBackend::RunExchange(ExchangeTag tag, const std::vector<PeerTransfer>& transfers) {
  return Exchange(peers_, transfers, tag, interrupt_.get());
}

// A lost rank ends the meeting at once: it would never call.
absl::StatusOr<std::vector<UniqueFd>> Meet(const ProcessGroupEnvironment& environment, ControlPlane& control,
                                           absl::Duration timeout) {
  const UniqueFd interrupt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!interrupt.valid()) return ErrnoStatus("cannot make", "an eventfd");
  const BreakListener listener(&control, [&] { Notify(interrupt); });
  const auto tell = [&](const std::string& own) { return control.AllGather(own, "addresses"); };
  auto peers = ConnectPeerMesh(environment, tell, {.timeout = timeout, .interrupt_fd = interrupt.get()});
  if (peers.ok()) return peers;
  const absl::Status broken = control.status();
  return broken.ok() ? control.CauseOf(peers.status()) : broken;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateTcpCommunicator(
    const ProcessGroupEnvironment& environment, ControlPlane* control, const CommunicatorOptions& options) {
  UniqueFd interrupt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!interrupt.valid()) return ErrnoStatus("cannot make", "an eventfd");
  std::vector<UniqueFd> peers(1);
  if (control->size() > 1) {
    ASSIGN_OR_RETURN(peers, Meet(environment, *control, options.meeting_timeout));
  }
  return std::make_unique<Communicator>(
      control, options,
      std::make_unique<TcpBackend>(control->rank(), std::move(peers), std::move(interrupt)));
}

}  // namespace warpsmith
