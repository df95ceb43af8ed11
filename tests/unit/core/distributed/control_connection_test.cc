#include "core/distributed/control_connection.h"

#include <sys/socket.h>

#include <utility>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::pair<UniqueFd, UniqueFd> MakePair() {
  int fds[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

ControlFrame Part(int64_t number, std::string bytes) {
  return {.kind = ControlFrame::Kind::kPart,
          .number = number,
          .text = "batch",
          .bytes = std::make_shared<const std::string>(std::move(bytes))};
}

}  // namespace

TEST_CASE("frames arrive whole and in order, however full the socket is") {
  auto [here, there] = MakePair();
  ControlConnection sender(std::move(here)), receiver(std::move(there));
  const std::string large(5'000'000, 'x');
  sender.Queue(Part(1, ""));
  sender.Queue(Part(2, large));
  sender.Queue({.kind = ControlFrame::Kind::kBeat, .number = 40, .text = "collecting", .bytes = nullptr});
  std::vector<ControlFrame> frames;
  while (!sender.idle() || frames.size() < 3) {
    REQUIRE(sender.SendSome().ok());
    REQUIRE(receiver.ReceiveSome(frames).ok());
  }
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].bytes->empty());
  CHECK(*frames[1].bytes == large);
  CHECK(frames[1].number == 2);
  CHECK(frames[1].text == "batch");
  CHECK(frames[2].text == "collecting");
  CHECK(frames[2].number == 40);
}

TEST_CASE("what was sent before the end is still received") {
  auto [here, there] = MakePair();
  ControlConnection receiver(std::move(there));
  {
    ControlConnection sender(std::move(here));
    sender.Queue(Part(7, "last words"));
    REQUIRE(sender.SendSome().ok());
  }
  std::vector<ControlFrame> frames;
  CHECK(absl::IsUnavailable(receiver.ReceiveSome(frames)));
  REQUIRE(frames.size() == 1);
  CHECK(*frames[0].bytes == "last words");
}

TEST_CASE("bytes that are no frame are refused") {
  auto [here, there] = MakePair();
  ControlConnection receiver(std::move(there));
  const std::string nonsense(64, '\x7f');
  REQUIRE(send(here.get(), nonsense.data(), nonsense.size(), 0) == 64);
  std::vector<ControlFrame> frames;
  CHECK(absl::IsInternal(receiver.ReceiveSome(frames)));
}

TEST_CASE("sending to a peer that is gone fails") {
  auto [here, there] = MakePair();
  ControlConnection sender(std::move(here));
  there.Reset();
  sender.Queue(Part(1, "to nobody"));
  CHECK(absl::IsUnavailable(sender.SendSome()));
}

}  // namespace warpsmith
