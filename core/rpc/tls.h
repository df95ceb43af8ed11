// The PEM files that encrypt a server's connections or a client's, read and checked.
#ifndef WARPSMITH_CORE_RPC_TLS_H_
#define WARPSMITH_CORE_RPC_TLS_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace warpsmith {

struct TlsFiles {
  // One's own certificate, with its chain, and its key. A server needs both; a client has both or neither.
  std::filesystem::path certificate;
  std::filesystem::path key;
  // The authority that signs the other side's certificates. A server with one demands a certificate of every client
  // (mTLS); a client without one trusts the system's authorities.
  std::filesystem::path authority;

  bool empty() const { return certificate.empty() && key.empty() && authority.empty(); }
};

// The same files' contents.
struct TlsIdentity {
  std::string certificate;
  std::string key;
  std::string authority;

  bool empty() const { return certificate.empty() && authority.empty(); }
};

// How a client reaches a server, as a user writes it down; core/rpc/channel.h reads it.
struct ChannelFiles {
  TlsFiles tls;  // encrypts where any is given; authority "system": those that the system trusts
  std::filesystem::path token_file;
};

// INVALID_ARGUMENT naming the file: a certificate without key or the reverse, what is no PEM, a key that does
// not belong to its certificate, a certificate that has expired or is not valid yet. Otherwise what reading
// says. Empty for empty files.
absl::StatusOr<TlsIdentity> ReadTls(const TlsFiles& files);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_TLS_H_
