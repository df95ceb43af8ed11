#include "core/config/scalar_text.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("integers are read whole, up to the limits of 64 bits") {
  CHECK(ParseInteger("0") == 0);
  CHECK(ParseInteger("-12") == -12);
  CHECK(ParseInteger("+3") == 3);
  CHECK(ParseInteger("9223372036854775807") == std::numeric_limits<int64_t>::max());
  CHECK(ParseInteger("-9223372036854775808") == std::numeric_limits<int64_t>::min());
  for (const char* text :
       {"", "+", "-", "1.0", "1e3", "0x10", " 1", "1 ", "+-1", "++1", "9223372036854775808", "1_000"}) {
    INFO(text);
    CHECK_FALSE(ParseInteger(text).has_value());
  }
}

TEST_CASE("reals are finite and read whole") {
  CHECK(ParseReal("1") == 1.0);
  CHECK(ParseReal("-0.5") == -0.5);
  CHECK(ParseReal("1e-3") == 1e-3);
  CHECK(ParseReal("+2.5E2") == 250.0);
  for (const char* text :
       {"", ".", "nan", "inf", "-inf", ".inf", ".nan", "1e999", "0x1p3", "1,5", "1.5f", "+-1.0"}) {
    INFO(text);
    CHECK_FALSE(ParseReal(text).has_value());
  }
}

TEST_CASE("truth is true or false and nothing else") {
  CHECK(ParseTruth("true") == true);
  CHECK(ParseTruth("false") == false);
  for (const char* text : {"True", "yes", "on", "1", ""}) CHECK_FALSE(ParseTruth(text).has_value());
}

TEST_CASE("a real that was formatted reads back to the same bits") {
  for (const double value : {0.0, 1e-6, 0.1, 1.0 / 3, 1e300, -2.5, 5e-324, std::nextafter(1.0, 2.0)}) {
    CHECK(ParseReal(FormatReal(value)) == value);
  }
}

}  // namespace warpsmith
