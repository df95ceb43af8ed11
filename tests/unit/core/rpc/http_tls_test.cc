#include "core/rpc/http_tls.h"

#include "tests/support/catch.h"
#include "tests/support/test_certificates.h"

namespace warpsmith {
namespace {

// Connections themselves are tested on a running service, with several clients
// (tests/integration/tenants_test.py).
TEST_CASE("a context is made of an identity, with and without an authority") {
  const CertifiedKey authority = MakeAuthority("authority");
  const CertifiedKey pair = MakeCertificate("server", authority);
  TlsIdentity identity{.certificate = pair.certificate, .key = pair.key};
  absl::StatusOr<boost::asio::ssl::context> open = MakeTlsContext(identity);
  REQUIRE(open.ok());
  CHECK(SSL_CTX_get_verify_mode(open->native_handle()) == SSL_VERIFY_NONE);
  identity.authority = authority.certificate;
  absl::StatusOr<boost::asio::ssl::context> mutual = MakeTlsContext(identity);
  REQUIRE(mutual.ok());
  CHECK(SSL_CTX_get_verify_mode(mutual->native_handle()) ==
        (SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT));
}

TEST_CASE("what is no identity is refused") {
  const CertifiedKey pair = MakeAuthority("one");
  CHECK(absl::IsInvalidArgument(MakeTlsContext({.certificate = "text", .key = "text"}).status()));
  CHECK(absl::IsInvalidArgument(
      MakeTlsContext({.certificate = pair.certificate, .key = MakeAuthority("other").key}).status()));
}

}  // namespace
}  // namespace warpsmith
