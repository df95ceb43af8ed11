#include "core/base/host_id.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("the id of a host is a UUID, the same each time") {
  const std::string id = HostId();
  CHECK(id.size() == 36);
  CHECK(id.find('\n') == std::string::npos);
  CHECK(id == HostId());
}

}  // namespace warpsmith
