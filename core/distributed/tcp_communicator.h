// The communicator of machines without GPUs: TCP, sums in rank order.
#ifndef WARPSMITH_CORE_DISTRIBUTED_TCP_COMMUNICATOR_H_
#define WARPSMITH_CORE_DISTRIBUTED_TCP_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "core/distributed/communicator.h"
#include "core/distributed/peer_exchange.h"
#include "core/distributed/process_group_environment.h"
#include "core/distributed/rendezvous_store.h"

namespace warpsmith {

// Works on host memory over a full mesh of connections. A sum is ((rank 0 + rank 1) + rank 2) + ..., whatever
// arrives first, so it repeats to the bit. Each rank sums one slice of the data, so every link carries 2 (n -
// 1) / n of it.
class TcpCommunicator : public Communicator {
 public:
  // Meets the other ranks within `options.deadline`; alone, it needs no network. Keeps the rendezvous store's
  // server alive where this rank serves it.
  static absl::StatusOr<std::unique_ptr<TcpCommunicator>> Create(const ProcessGroupEnvironment& environment,
                                                                 const CommunicatorOptions& options);
  ~TcpCommunicator() override;

 private:
  TcpCommunicator(const ProcessGroupEnvironment& environment, const CommunicatorOptions& options,
                  std::unique_ptr<RendezvousStore> store, std::vector<UniqueFd> peers, UniqueFd interrupt);

  absl::Status DoAllReduceSum(void* data, int64_t count, ElementType type) override;
  absl::Status DoBroadcast(void* data, int64_t num_bytes, int root) override;
  absl::Status DoAllGather(const void* send, void* receive, int64_t num_bytes) override;
  absl::Status DoBarrier() override;
  void Interrupt() override;

  absl::Status RunExchange(int operation, int step, const std::vector<PeerTransfer>& transfers);

  std::unique_ptr<RendezvousStore> store_;
  std::vector<UniqueFd> peers_;  // by rank; own entry not valid
  UniqueFd interrupt_;           // eventfd, readable once interrupted
  std::vector<char> scratch_;    // the other ranks' parts of this rank's slice
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_TCP_COMMUNICATOR_H_
