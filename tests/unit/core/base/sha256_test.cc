#include "core/base/sha256.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("SHA-256 of the standard's examples") {
  // FIPS 180-4, examples "" and "abc".
  CHECK(Sha256Hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha256Hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("SHA-256 does not depend on how the bytes are cut") {
  Sha256 sha;
  sha.Update("a");
  sha.Update("");
  sha.Update("bc");
  CHECK(sha.HexDigest() == Sha256Hex("abc"));
}

}  // namespace warpsmith
