#include "core/rpc/channel.h"

#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_certificates.h"

namespace warpsmith {
namespace {

TEST_CASE("no files are a plain channel, an authority encrypts, a token comes without its line's end") {
  TemporaryDirectory directory;
  const CertifiedKey authority = MakeAuthority("authority");
  const auto file = WriteTls(directory.path(), "authority", authority).certificate;
  std::ofstream(directory.path() / "token") << "0123456789abcdef\n";
  CHECK(ReadChannelFiles({})->encryption == Encryption::kNone);
  const absl::StatusOr<ChannelOptions> options =
      ReadChannelFiles({.tls = {.authority = file}, .token_file = directory.path() / "token"});
  REQUIRE(options.ok());
  CHECK(options->encryption == Encryption::kTls);
  CHECK(options->tls.authority == authority.certificate);
  CHECK(options->token == "0123456789abcdef");
  const absl::StatusOr<ChannelOptions> system = ReadChannelFiles({.tls = {.authority = "system"}});
  REQUIRE(system.ok());
  CHECK(system->encryption == Encryption::kTls);
  CHECK(system->tls.authority.empty());
}

TEST_CASE("a token does not travel in the open") {
  const absl::Status status = ReadChannelFiles({.token_file = "/tmp/token"}).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("encrypted only"));
}

}  // namespace
}  // namespace warpsmith
