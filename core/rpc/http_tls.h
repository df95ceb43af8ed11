// TLS of the HTTP server, in Asio's terms.
#ifndef WARPSMITH_CORE_RPC_HTTP_TLS_H_
#define WARPSMITH_CORE_RPC_HTTP_TLS_H_

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "core/rpc/tls.h"

namespace warpsmith {

// A server's context, TLS 1.2 and later; with an authority it demands certificates of clients.
// INVALID_ARGUMENT for an identity that ReadTls would refuse.
absl::StatusOr<boost::asio::ssl::context> MakeTlsContext(const TlsIdentity& identity);

// Common name of the other side's certificate, which the handshake has verified; empty: it showed none.
std::string PeerName(const SSL* connection);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_HTTP_TLS_H_
