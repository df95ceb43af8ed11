#include "core/rpc/server_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kIpv4Prefix = "ipv4:";  // of a list of addresses

absl::Status BadAddress(const std::string& address, const std::string& reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("address \"", address, "\": ", reason, "; write host:port or unix:/path"));
}

// Whether a server at `host` listens on all interfaces: 0.0.0.0 or [::], however they are spelt.
bool IsAnyHost(const std::string& host) {
  in_addr four{};
  if (inet_aton(host.c_str(), &four) != 0) return four.s_addr == htonl(INADDR_ANY);
  in6_addr six{};
  const bool is_bracketed = host.size() > 2 && host.front() == '[';
  return is_bracketed && inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) == 1 &&
         std::memcmp(&six, &in6addr_any, sizeof(six)) == 0;
}

absl::Status CheckOneClientAddress(const std::string& address) {
  const absl::StatusOr<ServerAddress> parsed = ParseServerAddress(address);
  if (!parsed.ok()) return parsed.status();
  if (!parsed->socket_path.empty()) return absl::OkStatus();
  if (parsed->port == 0) return BadAddress(address, "nobody listens at port 0");
  if (!IsAnyHost(parsed->host)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("address \"", address, "\": ", parsed->host,
                   " is where a server listens, on all interfaces; write the name or address of its machine, "
                   "localhost on the same one"));
}

sockaddr_un SocketAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

absl::StatusOr<ServerAddress> ParseServerAddress(const std::string& address) {
  ServerAddress parsed;
  if (address.compare(0, kUnixPrefix.size(), kUnixPrefix) == 0) {
    parsed.socket_path = address.substr(kUnixPrefix.size());
    if (parsed.socket_path.empty()) return BadAddress(address, "the path is empty");
    constexpr size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
    if (parsed.socket_path.size() > kPathBytesMax) {
      return BadAddress(address, absl::StrCat("the path has ", parsed.socket_path.size(),
                                              " bytes, a socket's at most ", kPathBytesMax));
    }
    return parsed;
  }
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return BadAddress(address, "host or port is missing");
  parsed.host = address.substr(0, colon);
  const bool is_bracketed = parsed.host.front() == '[' && parsed.host.back() == ']';
  if (!is_bracketed && parsed.host.find(':') != std::string::npos) {
    return BadAddress(address, "an IPv6 address stands in brackets");
  }
  const char* const end = address.data() + address.size();
  const auto [parsed_end, error] = std::from_chars(address.data() + colon + 1, end, parsed.port);
  if (error != std::errc() || parsed_end != end || parsed.port < 0 || parsed.port > 65535) {
    return BadAddress(address, "the port is not a number from 0 to 65535");
  }
  return parsed;
}

absl::Status CheckClientAddress(const std::string& address) {
  if (address.compare(0, kIpv4Prefix.size(), kIpv4Prefix) == 0) {
    for (const absl::string_view one : absl::StrSplit(address.substr(kIpv4Prefix.size()), ',')) {
      RETURN_IF_ERROR(CheckOneClientAddress(std::string(one)));
    }
    return absl::OkStatus();
  }
  for (const std::string_view form : {"ipv6:", "dns:", "unix-abstract:"}) {
    if (address.compare(0, form.size(), form) == 0) return absl::OkStatus();
  }
  const size_t scheme = address.find("://");
  if (scheme != std::string::npos) {
    return BadAddress(address, absl::StrCat("it begins with ", address.substr(0, scheme), "://"));
  }
  return CheckOneClientAddress(address);
}

std::string FormatServerAddress(const ServerAddress& address, int bound_port) {
  if (!address.socket_path.empty()) return absl::StrCat("unix:", address.socket_path);
  return absl::StrCat(address.host, ":", bound_port);
}

absl::Status NameAddressKey(const absl::Status& status, const std::string& key) {
  if (!absl::IsAlreadyExists(status) || key.empty()) return status;
  return absl::AlreadyExistsError(absl::StrCat(status.message(), "; choose another by ", key));
}

absl::Status CheckSocketFree(const std::string& socket_path) {
  struct stat status;
  if (stat(socket_path.c_str(), &status) != 0) return absl::OkStatus();
  if (!S_ISSOCK(status.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat(socket_path, " is there and is no socket; remove it"));
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoStatus("cannot open a socket for", socket_path);
  const sockaddr_un address = SocketAddress(socket_path);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno == ECONNREFUSED) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat("a server is already listening at ", socket_path));
}

}  // namespace warpsmith
