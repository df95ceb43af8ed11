#include "core/rpc/error_details.h"

#include "core/base/counter_random.h"
#include "core/rpc/health_message.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("error details read back") {
  const ErrorDetails details{
      .code = 8, .message = "full", .details = {{"type.googleapis.com/a", "one"}, {"b", ""}}};
  const auto decoded = DecodeErrorDetails(EncodeErrorDetails(details));
  REQUIRE(decoded.has_value());
  CHECK(decoded->code == 8);
  CHECK(decoded->message == "full");
  REQUIRE(decoded->details.size() == 2);
  CHECK(decoded->details[0].type_url == "type.googleapis.com/a");
  CHECK(decoded->details[0].value == "one");
}

TEST_CASE("the bytes are those of google.rpc.Status and RetryInfo") {
  // Field by field as the protos say: Status(code=8, message="full") and RetryInfo(retry_delay=1.5 s).
  CHECK(EncodeErrorDetails({.code = 8, .message = "full"}) == std::string("\x08\x08\x12\x04"
                                                                          "full"));
  CHECK(EncodeRetryInfo(absl::Milliseconds(1500)) == std::string("\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01"));
}

TEST_CASE("a retry delay reads back to the nanosecond") {
  for (const absl::Duration delay : {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Seconds(90)}) {
    CHECK(DecodeRetryInfo(EncodeRetryInfo(delay)) == delay);
  }
}

TEST_CASE("unknown fields are skipped") {
  // Field 15, a varint, before code 5.
  CHECK(DecodeErrorDetails(std::string("\x78\x01\x08\x05", 4))->code == 5);
}

TEST_CASE("broken bytes are refused and never read past") {
  CHECK_FALSE(DecodeErrorDetails("\x12\x7f"
                                 "cut short")
                  .has_value());
  CHECK_FALSE(DecodeErrorDetails("\x12\xff\xff\xff\xff\x0f").has_value());
  CHECK_FALSE(DecodeErrorDetails("\x1a\x03"
                                 "\xff\xff\xff")
                  .has_value());
  CHECK_FALSE(DecodeRetryInfo("\x0a\x02\x08").has_value());
}

TEST_CASE("a message of details cut at any byte decodes or is refused") {
  const std::string whole = EncodeErrorDetails({.code = 8, .message = "m", .details = {{"t", "v"}}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto decoded = DecodeErrorDetails(std::string_view(whole).substr(0, size));
    if (decoded.has_value()) CHECK(decoded->details.empty());
  }
}

TEST_CASE("random bytes do no harm") {
  for (uint64_t round = 0; round < 2000; ++round) {
    std::string bytes;
    for (uint64_t i = 0; i < UniformWord(round, 0) % 40; ++i) {
      bytes.push_back(static_cast<char>(UniformWord(round, i + 1)));
    }
    const auto details = DecodeErrorDetails(bytes);
    CHECK((!details.has_value() || details->details.size() <= 64));
    DecodeRetryInfo(bytes);
    DecodeHealthCheckResponse(bytes);
  }
}

TEST_CASE("health messages are those of grpc.health.v1") {
  CHECK(EncodeHealthCheckRequest("abc") == std::string("\x0a\x03"
                                                       "abc"));
  CHECK(DecodeHealthCheckResponse(std::string("\x08\x01", 2)) == HealthStatus::kServing);
  CHECK(DecodeHealthCheckResponse(std::string("\x08\x02", 2)) == HealthStatus::kNotServing);
  CHECK(DecodeHealthCheckResponse(std::string("\x08\x03", 2)) == HealthStatus::kServiceUnknown);
  CHECK(DecodeHealthCheckResponse("") == HealthStatus::kUnknown);
  CHECK(DecodeHealthCheckResponse(std::string("\x08\x09", 2)) == HealthStatus::kUnknown);
}

}  // namespace warpsmith
