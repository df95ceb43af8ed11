#include "core/rpc/http_tls.h"

#include <openssl/x509.h>

#include <boost/asio/buffer.hpp>

#include "absl/strings/str_cat.h"

namespace warpsmith {

namespace ssl = boost::asio::ssl;

absl::StatusOr<ssl::context> MakeTlsContext(const TlsIdentity& identity) {
  boost::system::error_code error;
  ssl::context context(ssl::context::tls_server);
  context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1,
                      error);
  if (!error) context.use_certificate_chain(boost::asio::buffer(identity.certificate), error);
  if (!error) context.use_private_key(boost::asio::buffer(identity.key), ssl::context::pem, error);
  if (!error && !identity.authority.empty()) {
    context.add_certificate_authority(boost::asio::buffer(identity.authority), error);
    if (!error) context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
  }
  if (!error) return context;
  return absl::InvalidArgumentError(absl::StrCat("TLS of the HTTP door: ", error.message()));
}

std::string PeerName(const SSL* connection) {
  X509* const certificate = SSL_get1_peer_certificate(connection);
  if (certificate == nullptr) return "";
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  X509_free(certificate);
  return name;
}

}  // namespace warpsmith
