#include "reward_service/grading/tenants.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

struct TokenFiles {
  std::filesystem::path Write(const std::string& name, const std::string& token) {
    std::ofstream(directory.path() / name) << token;
    return directory.path() / name;
  }
  TemporaryDirectory directory;
};

TEST_CASE("without tenants everybody is one, with the whole queue") {
  const absl::StatusOr<Tenants> tenants = Tenants::Load({}, 100);
  REQUIRE(tenants.ok());
  CHECK((*tenants->Identify({}))->requests_max == 100);
  CHECK((*tenants->Identify({.authorization = "Bearer whatever"}))->name == "default");
}

TEST_CASE("a token names its tenant, and nobody gets in with another") {
  TokenFiles files;
  const absl::StatusOr<Tenants> tenants = Tenants::Load(
      {{.name = "lab", .token_file = files.Write("lab", "0123456789abcdef\n")},
       {.name = "farm", .token_file = files.Write("farm", "fedcba9876543210"), .requests_max = 7}},
      100);
  REQUIRE(tenants.ok());
  CHECK((*tenants->Identify({.authorization = "Bearer 0123456789abcdef"}))->name == "lab");
  CHECK((*tenants->Identify({.authorization = "bearer  fedcba9876543210"}))->requests_max == 7);
  CHECK((*tenants->Identify({.authorization = "Bearer 0123456789abcdef"}))->requests_max == 50);
  for (const std::string wrong : {"", "Bearer ", "Bearer 0123456789abcde", "Basic 0123456789abcdef",
                                  "0123456789abcdef", "Bearer lab"}) {
    INFO(wrong);
    CHECK(absl::IsUnauthenticated(tenants->Identify({.authorization = wrong}).status()));
  }
}

TEST_CASE("a certificate in a tenant's name will do, where no token is shown") {
  const absl::StatusOr<Tenants> tenants = Tenants::Load({{.name = "lab"}}, 100);
  REQUIRE(tenants.ok());
  CHECK((*tenants->Identify({.certificate_name = "lab"}))->name == "lab");
  CHECK(absl::IsUnauthenticated(tenants->Identify({.certificate_name = "other"}).status()));
  CHECK(absl::IsUnauthenticated(
      tenants->Identify({.authorization = "Bearer x", .certificate_name = "lab"}).status()));
}

TEST_CASE("short, shared and missing tokens are refused with the tenant's name") {
  TokenFiles files;
  const auto status = [&](const std::vector<TenantOptions>& options) {
    return Tenants::Load(options, 100).status();
  };
  CHECK_THAT(
      std::string(status({{.name = "lab", .token_file = files.Write("short", "0123456789")}}).message()),
      Catch::Contains("tenant lab has 10 bytes"));
  const auto same = files.Write("same", "0123456789abcdef");
  CHECK_THAT(
      std::string(status({{.name = "a", .token_file = same}, {.name = "b", .token_file = same}}).message()),
      Catch::Contains("tenants a and b have the same token"));
  CHECK(absl::IsNotFound(status({{.name = "lab", .token_file = "/nonexistent/token"}})));
}

}  // namespace
}  // namespace warpsmith
