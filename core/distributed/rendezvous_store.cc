#include "core/distributed/rendezvous_store.h"

#include <chrono>
#include <exception>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"

namespace warpsmith {

struct RendezvousStore::Client {
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::string prefix;
  std::string address;
  WaitLineOptions lines;
};

RendezvousStore::RendezvousStore(std::unique_ptr<Client> client) : client_(std::move(client)) {}
RendezvousStore::~RendezvousStore() = default;

absl::StatusOr<std::unique_ptr<RendezvousStore>> RendezvousStore::Connect(
    const ProcessGroupEnvironment& environment, absl::Duration timeout, const WaitLineOptions& lines) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(environment.master_port);
  options.isServer = !environment.agent_store && environment.rank == 0;
  options.waitWorkers = false;
  options.timeout = absl::ToChronoMilliseconds(timeout);
  auto client = std::make_unique<Client>();
  client->prefix = environment.KeyPrefix();
  client->address = absl::StrCat(environment.master_address, ":", environment.master_port);
  client->lines = lines;
  const char* const server = environment.agent_store ? "the launcher" : "rank 0";
  try {
    const WaitLines waiting(absl::StrCat("the rendezvous store of ", server, " at ", client->address),
                            timeout, lines);
    client->store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
  } catch (const std::exception& error) {
    if (options.isServer) {
      return absl::UnavailableError(absl::StrCat(
          "cannot serve the rendezvous store at ", client->address, ": ", Escape(error.what(), 512),
          "; where the port is in use, start again, or choose another by MASTER_PORT where you have set it"));
    }
    return absl::UnavailableError(absl::StrCat("no rendezvous store at ", client->address, " within ",
                                               absl::FormatDuration(timeout), ": ",
                                               Escape(error.what(), 512)));
  }
  return std::unique_ptr<RendezvousStore>(new RendezvousStore(std::move(client)));
}

absl::Status RendezvousStore::Set(const std::string& key, std::string_view value) {
  try {
    const std::vector<uint8_t> bytes(value.begin(), value.end());
    client_->store->set(absl::StrCat(client_->prefix, key), bytes);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot set ", key, " in the rendezvous store: ", Escape(error.what(), 512)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RendezvousStore::Get(const std::string& key, std::string_view who,
                                                 absl::Duration timeout) {
  const std::string full_key = absl::StrCat(client_->prefix, key);
  try {
    const WaitLines waiting(absl::StrCat(AbslView(who), ", which is to set ", key,
                                         " in the rendezvous store at ", client_->address),
                            timeout, client_->lines);
    client_->store->wait({full_key}, absl::ToChronoMilliseconds(timeout));
    const std::vector<uint8_t> bytes = client_->store->get(full_key);
    return std::string(bytes.begin(), bytes.end());
  } catch (const std::exception& error) {
    return absl::DeadlineExceededError(
        absl::StrCat(AbslView(who), " did not set ", key, " in the rendezvous store within ",
                     absl::FormatDuration(timeout), ": ", Escape(error.what(), 512)));
  }
}

}  // namespace warpsmith
