#include "core/distributed/tcp_communicator.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/distributed/peer_mesh.h"

namespace warpsmith {
namespace {

// Operation codes of ExchangeTag.
enum Operation { kAllReduce = 1, kBroadcast = 2, kAllGather = 3, kBarrier = 4 };

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

}  // namespace

absl::StatusOr<std::unique_ptr<TcpCommunicator>> TcpCommunicator::Create(
    const ProcessGroupEnvironment& environment, const CommunicatorOptions& options) {
  UniqueFd interrupt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!interrupt.valid()) return ErrnoStatus("cannot make", "an eventfd");
  std::unique_ptr<RendezvousStore> store;
  std::vector<UniqueFd> peers(1);
  if (environment.world_size > 1) {
    ASSIGN_OR_RETURN(store, RendezvousStore::Connect(environment, options.deadline));
    ASSIGN_OR_RETURN(peers, ConnectPeerMesh(environment, *store, options.deadline));
  }
  return std::unique_ptr<TcpCommunicator>(
      new TcpCommunicator(environment, options, std::move(store), std::move(peers), std::move(interrupt)));
}

TcpCommunicator::TcpCommunicator(const ProcessGroupEnvironment& environment,
                                 const CommunicatorOptions& options, std::unique_ptr<RendezvousStore> store,
                                 std::vector<UniqueFd> peers, UniqueFd interrupt)
    : Communicator(environment.rank, environment.world_size, options),
      store_(std::move(store)),
      peers_(std::move(peers)),
      interrupt_(std::move(interrupt)) {}

TcpCommunicator::~TcpCommunicator() { StopWatchdog(); }

absl::Status TcpCommunicator::DoAllReduceSum(void* data, int64_t count, ElementType type) {
  const int64_t element_bytes = ElementBytes(type);
  char* bytes = static_cast<char*>(data);
  const int64_t own_start = SliceStart(count, rank(), size());
  const int64_t own_count = SliceStart(count, rank() + 1, size()) - own_start;
  const int64_t own_bytes = own_count * element_bytes;
  char* own = bytes + own_start * element_bytes;

  // Step 0: everybody's part of my slice comes to me. Step 1: my sum goes to everybody.
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
  RETURN_IF_ERROR(RunExchange(kAllReduce, 0, scatter));
  std::memcpy(scratch_.data() + rank() * own_bytes, own, own_bytes);
  std::memcpy(own, scratch_.data(), own_bytes);
  for (int peer = 1; peer < size(); ++peer) AddInto(own, scratch_.data() + peer * own_bytes, own_count, type);
  return RunExchange(kAllReduce, 1, gather);
}

absl::Status TcpCommunicator::DoBroadcast(void* data, int64_t num_bytes, int root) {
  std::vector<PeerTransfer> transfers(size());
  if (rank() == root) {
    for (PeerTransfer& transfer : transfers) transfer = {data, num_bytes, nullptr, 0};
  } else {
    transfers[root] = {nullptr, 0, data, num_bytes};
  }
  return RunExchange(kBroadcast, 0, transfers);
}

absl::Status TcpCommunicator::DoAllGather(const void* send, void* receive, int64_t num_bytes) {
  char* parts = static_cast<char*>(receive);
  std::vector<PeerTransfer> transfers(size());
  for (int peer = 0; peer < size(); ++peer) {
    transfers[peer] = {send, num_bytes, parts + peer * num_bytes, num_bytes};
  }
  std::memmove(parts + rank() * num_bytes, send, num_bytes);
  return RunExchange(kAllGather, 0, transfers);
}

absl::Status TcpCommunicator::DoBarrier() {
  return RunExchange(kBarrier, 0, std::vector<PeerTransfer>(size()));
}

void TcpCommunicator::Interrupt() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(interrupt_.get(), &one, sizeof(one));
  for (const UniqueFd& peer : peers_) {
    if (peer.valid()) shutdown(peer.get(), SHUT_RDWR);  // so that peers fail now and not at their deadline
  }
}

absl::Status TcpCommunicator::RunExchange(int operation, int step,
                                          const std::vector<PeerTransfer>& transfers) {
  const ExchangeTag tag{.sequence = current_sequence(), .operation = operation, .step = step};
  return Exchange(peers_, transfers, tag, interrupt_.get());
}

}  // namespace warpsmith
