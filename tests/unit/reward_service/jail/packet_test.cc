#include "reward_service/jail/packet.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

struct Pair {
  UniqueFd left;
  UniqueFd right;
};

Pair Connect() {
  auto pair = MakePacketPair();
  REQUIRE(pair.ok());
  return {std::move(pair->first), std::move(pair->second)};
}

TEST_CASE("fields and descriptors arrive together") {
  const Pair pair = Connect();
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  REQUIRE(SendPacket(pair.left.get(), {{"op", "x"}, {"n", 3}}, {writer.get()}).ok());
  const auto packet = ReceivePacket(pair.right.get());
  REQUIRE(packet.ok());
  CHECK(packet->fields["n"] == 3);
  REQUIRE(packet->descriptors.size() == 1);
  CHECK((fcntl(packet->descriptors[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
  REQUIRE(write(packet->descriptors[0].get(), "z", 1) == 1);
  char byte = 0;
  CHECK(read(reader.get(), &byte, 1) == 1);
}

TEST_CASE("a hang-up is UNAVAILABLE and silence is DEADLINE_EXCEEDED") {
  Pair pair = Connect();
  CHECK(ReceivePacket(pair.right.get(), absl::Now() + absl::Milliseconds(5)).status().code() ==
        absl::StatusCode::kDeadlineExceeded);
  pair.left.Reset();
  CHECK(ReceivePacket(pair.right.get()).status().code() == absl::StatusCode::kUnavailable);
  CHECK(SendPacket(pair.right.get(), {{"op", "x"}}).code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("what is not a packet is INVALID_ARGUMENT") {
  for (const std::string& bytes :
       {std::string("ab"), std::string("\x05\0\0\0{}", 6), std::string("\x02\0\0\0[]", 6),
        std::string("\x03\0\0\0{x}", 7), std::string("\xff\xff\xff\xff{}", 6)}) {
    const Pair pair = Connect();
    REQUIRE(send(pair.left.get(), bytes.data(), bytes.size(), 0) > 0);
    CHECK(ReceivePacket(pair.right.get()).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("deep nesting and a packet over the limit do no harm") {
  const Pair pair = Connect();
  const std::string deep(30000, '[');
  std::string frame(4, '\0');
  frame[0] = static_cast<char>(deep.size() & 0xff);
  frame[1] = static_cast<char>(deep.size() >> 8);
  REQUIRE(send(pair.left.get(), (frame + deep).data(), deep.size() + 4, 0) > 0);
  CHECK_FALSE(ReceivePacket(pair.right.get()).ok());
  for (const auto& [depth, taken] : {std::pair(40, true), std::pair(30000, false)}) {
    const std::string list = std::string(depth, '[') + std::string(depth, ']');
    const std::string text = "{\"a\":" + list + "}";
    frame = {static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8), 0, 0};
    REQUIRE(send(pair.left.get(), (frame + text).data(), text.size() + 4, 0) > 0);
    const auto packet = ReceivePacket(pair.right.get());
    CHECK(packet.ok() == taken);
  }
  CHECK(SendPacket(pair.left.get(), {{"text", std::string(kPacketBytesMax, 'x')}}).code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("text that is not UTF-8 is replaced, not refused") {
  const Pair pair = Connect();
  REQUIRE(SendPacket(pair.left.get(), {{"text", "a\xff\xfe"}}).ok());
  CHECK(ReceivePacket(pair.right.get()).ok());
}

}  // namespace
}  // namespace warpsmith
