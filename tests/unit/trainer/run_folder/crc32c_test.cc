#include "trainer/run_folder/crc32c.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("checksums agree with RFC 3720, appendix B.4") {
  CHECK(Crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(Crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
  CHECK(Crc32c("123456789") == 0xe3069283u);
  CHECK(Crc32c("") == 0u);
}

TEST_CASE("masking rotates by 15 and adds a constant") { CHECK(MaskedCrc32c("") == 0xa282ead8u); }

}  // namespace warpsmith
