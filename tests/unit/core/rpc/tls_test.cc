#include "core/rpc/tls.h"

#include <fstream>
#include <memory>
#include <string>

#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_certificates.h"

namespace warpsmith {
namespace {

std::string MessageOf(const TlsFiles& files) { return std::string(ReadTls(files).status().message()); }

TEST_CASE("a pair and its authority are read; no files are no identity") {
  TemporaryDirectory directory;
  const CertifiedKey authority = MakeAuthority("authority");
  const CertifiedKey pair = MakeCertificate("server", authority);
  TlsFiles files = WriteTls(directory.path(), "server", pair);
  files.authority = WriteTls(directory.path(), "authority", authority).certificate;
  const absl::StatusOr<TlsIdentity> identity = ReadTls(files);
  REQUIRE(identity.ok());
  CHECK(identity->certificate == pair.certificate);
  CHECK(identity->authority == authority.certificate);
  CHECK(ReadTls({})->empty());
}

TEST_CASE("files that cannot serve are refused by name") {
  TemporaryDirectory directory;
  const CertifiedKey authority = MakeAuthority("authority");
  const TlsFiles files = WriteTls(directory.path(), "server", MakeCertificate("server", authority));
  const TlsFiles other = WriteTls(directory.path(), "other", MakeCertificate("other", authority));
  const TlsFiles old = WriteTls(directory.path(), "old", MakeCertificate("old", authority, -absl::Hours(1)));
  std::ofstream(directory.path() / "text") << "no PEM";
  CHECK_THAT(MessageOf({.certificate = files.certificate}),
             Catch::Contains("both a certificate and its key"));
  CHECK_THAT(MessageOf({.certificate = files.certificate, .key = other.key}),
             Catch::Contains("other.key is not the key of"));
  CHECK_THAT(MessageOf(old), Catch::Contains("old.pem: the certificate expired on"));
  CHECK_THAT(MessageOf({.certificate = directory.path() / "text", .key = files.key}),
             Catch::Contains("text: no certificate in PEM"));
  CHECK_THAT(MessageOf({.certificate = files.certificate, .key = directory.path() / "text"}),
             Catch::Contains("text: no private key in PEM"));
  CHECK_THAT(MessageOf({.authority = "/nonexistent/authority"}), Catch::Contains("/nonexistent/authority"));
}

// A server that demands certificates of `authority`'s.
struct MutualServer {
  MutualServer() {
    const CertifiedKey pair = MakeCertificate("server", authority);
    auto started = RpcServer::Start(
        {.tls = {.certificate = pair.certificate, .key = pair.key, .authority = authority.certificate}}, {});
    REQUIRE(started.ok());
    server = *std::move(started);
    server->SetServing("", Serving::kYes);
  }

  absl::Status Reach(const ChannelOptions& options) const {
    return WaitUntilServing(CreateChannel(server->address(), options), "", absl::Seconds(3));
  }

  CertifiedKey authority = MakeAuthority("authority");
  std::unique_ptr<RpcServer> server;
};

ChannelOptions Tls(const CertifiedKey& pair, const std::string& authority) {
  return {.encryption = Encryption::kTls,
          .tls = {.certificate = pair.certificate, .key = pair.key, .authority = authority}};
}

TEST_CASE("a client with a certificate of the authority gets in, others do not") {
  const MutualServer served;
  const std::string& authority = served.authority.certificate;
  CHECK(served.Reach(Tls(MakeCertificate("client", served.authority), authority)).ok());
  CHECK_FALSE(served.Reach({}).ok());
  CHECK_FALSE(served.Reach({.encryption = Encryption::kTls, .tls = {.authority = authority}}).ok());
  CHECK_FALSE(
      served.Reach(Tls(MakeCertificate("client", served.authority, -absl::Hours(1)), authority)).ok());
  CHECK_FALSE(served.Reach(Tls(MakeCertificate("client", MakeAuthority("another")), authority)).ok());
}

TEST_CASE("a client does not talk to a server whose authority it does not know") {
  const MutualServer served;
  const CertifiedKey client = MakeCertificate("client", served.authority);
  CHECK_FALSE(served.Reach(Tls(client, MakeAuthority("another").certificate)).ok());
}

}  // namespace
}  // namespace warpsmith
