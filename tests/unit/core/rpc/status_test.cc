#include "core/rpc/status.h"

#include "absl/strings/cord.h"
#include "core/base/utf8.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("every code survives the way there and back") {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    CHECK(FromGrpcStatus(ToGrpcStatus(status)) == status);
  }
}

TEST_CASE("a payload survives the way there and back") {
  absl::Status status = absl::FailedPreconditionError("why");
  status.SetPayload("type.googleapis.com/some.Detail", absl::Cord("bytes"));
  CHECK(FromGrpcStatus(ToGrpcStatus(status)) == status);
}

TEST_CASE("back-pressure carries its delay across the wire") {
  const absl::Status status =
      FromGrpcStatus(ToGrpcStatus(BackPressureError("full", absl::Milliseconds(250))));
  CHECK(absl::IsResourceExhausted(status));
  CHECK(GetRetryDelay(status) == absl::Milliseconds(250));
}

TEST_CASE("a delay is bounded, and absent where nobody set it") {
  CHECK(GetRetryDelay(BackPressureError("x", absl::Seconds(-1))) == absl::ZeroDuration());
  CHECK(GetRetryDelay(BackPressureError("x", absl::InfiniteDuration())) == absl::Hours(24));
  CHECK_FALSE(GetRetryDelay(absl::ResourceExhaustedError("x")).has_value());
  CHECK_FALSE(GetRetryDelay(absl::OkStatus()).has_value());
}

TEST_CASE("a long message is cut to the limit, between characters, and marked") {
  std::string message;
  while (message.size() < 5000) message += "\xe2\x82\xac";
  const std::string cut = ToGrpcStatus(absl::InternalError(message)).error_message();
  CHECK(cut.size() <= kStatusMessageBytesMax);
  CHECK(cut.size() > kStatusMessageBytesMax - 6);
  CHECK(cut.substr(cut.size() - 3) == "...");
  CHECK(IsValidUtf8(cut));
  const std::string exact(kStatusMessageBytesMax, 'x');
  CHECK(ToGrpcStatus(absl::InternalError(exact)).error_message() == exact);
}

TEST_CASE("a message that is not UTF-8 is repaired") {
  CHECK(ToGrpcStatus(absl::InternalError("a\xff")).error_message() == "a\xef\xbf\xbd");
}

TEST_CASE("payloads too large for headers are left out") {
  absl::Status status = absl::InternalError("x");
  status.SetPayload("t", absl::Cord(std::string(100000, 'x')));
  CHECK(ToGrpcStatus(status).error_details().size() < 4096);
}

TEST_CASE("details that cannot be read leave code and message") {
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "why", "\x12\x7f nonsense"));
  CHECK(absl::IsAborted(status));
  CHECK(status.message() == "why");
}

}  // namespace warpsmith
