// The parts of a request's target, "/path?name=value&..." (RFC 9112, section 3.2.1).
#ifndef WARPSMITH_CORE_RPC_HTTP_TARGET_H_
#define WARPSMITH_CORE_RPC_HTTP_TARGET_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace warpsmith {

// What comes before the question mark, percent escapes as they came.
std::string_view PathOf(std::string_view target);

// The bytes of a path that its percent escapes stand for (RFC 3986, section 2.1), a plus sign as it is; nothing where a
// percent sign begins no escape.
std::optional<std::string> DecodedPath(std::string_view path);

// Names and values, decoded as of an HTML form; of equal names the last. An escape that is none stays as it
// is.
std::map<std::string, std::string> QueryOf(std::string_view target);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_RPC_HTTP_TARGET_H_
