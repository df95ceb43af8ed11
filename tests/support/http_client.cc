#include "tests/support/http_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int kPatienceMs = 30'000;

}  // namespace

HttpClient::HttpClient(const std::string& address) {
  const size_t colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  REQUIRE(getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found) ==
          0);
  socket_ = UniqueFd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int result = connect(socket_.get(), found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  REQUIRE(result == 0);
}

void HttpClient::Send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t part = send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (part <= 0) return;  // the answer, or its absence, tells
    sent += static_cast<size_t>(part);
  }
}

bool HttpClient::ReadMore() {
  pollfd wait{socket_.get(), POLLIN, 0};
  if (poll(&wait, 1, kPatienceMs) <= 0) return false;
  char buffer[65536];
  const ssize_t num_read = recv(socket_.get(), buffer, sizeof(buffer), 0);
  if (num_read <= 0) return false;
  received_.append(buffer, static_cast<size_t>(num_read));
  return true;
}

HttpReply HttpClient::Receive() {
  constexpr char kEnd[] = "\r\n\r\n";
  while (received_.find(kEnd) == std::string::npos) {
    if (!ReadMore()) return {};
  }
  HttpReply reply;
  const size_t head = received_.find(kEnd) + 4;
  reply.headers = received_.substr(0, head);
  reply.status = std::atoi(reply.headers.c_str() + reply.headers.find(' '));
  const std::string lower = absl::AsciiStrToLower(reply.headers);
  const size_t field = lower.find("content-length:");
  const size_t length =
      field == std::string::npos ? 0 : std::strtoul(lower.c_str() + field + 15, nullptr, 10);
  while (received_.size() < head + length) {
    if (!ReadMore()) return {};
  }
  reply.body = received_.substr(head, length);
  received_.erase(0, head + length);
  return reply;
}

std::string HttpClient::ReceiveChunk() {
  constexpr char kLineEnd[] = "\r\n";
  while (received_.find(kLineEnd) == std::string::npos) {
    if (!ReadMore()) return {};
  }
  const size_t begin = received_.find(kLineEnd) + 2;
  const size_t length = std::strtoul(received_.c_str(), nullptr, 16);
  while (received_.size() < begin + length + 2) {
    if (!ReadMore()) return {};
  }
  std::string chunk = received_.substr(begin, length);
  received_.erase(0, begin + length + 2);
  return chunk;
}

void HttpClient::EndSending() { (void)shutdown(socket_.get(), SHUT_WR); }

bool HttpClient::IsClosedWithin(absl::Duration timeout) {
  pollfd wait{socket_.get(), POLLIN, 0};
  char byte = 0;
  return poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) > 0 &&
         recv(socket_.get(), &byte, 1, 0) <= 0;
}

HttpReply HttpClient::Get(const std::string& path) {
  Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\n\r\n"));
  return Receive();
}

HttpReply HttpClient::Post(const std::string& path, const std::string& body) {
  Send(absl::StrCat("POST ", path,
                    " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: ",
                    body.size(), "\r\n\r\n", body));
  return Receive();
}

}  // namespace warpsmith
