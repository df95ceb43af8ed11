// Posts JSON to one HTTP endpoint and gets an answer, a status, or the reason why not: never later, never
// larger than allowed.
#ifndef WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_CLIENT_H_
#define WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace warpsmith {

struct LlmClientOptions {
  // Of the API, as OpenAI's clients take it: "http://host:8000/v1"; "/chat/completions" is added unless it
  // ends so.
  std::string url;
  // Sent as a bearer token; empty: none.
  std::string api_key;
  int64_t reply_bytes_max = 256 << 10;
  int64_t header_bytes_max = 64 << 10;
};

struct LlmHttpReply {
  int status = 0;
  std::string body;
  // What the endpoint asks to wait before the next request; zero: nothing.
  absl::Duration retry_after;
};

// Thread-safe; connections are kept and used again. Redirects are not followed, proxies of the environment
// not used, and no protocol but HTTP and HTTPS, whose certificates are checked, is spoken.
class LlmClient {
 public:
  // INVALID_ARGUMENT for a URL that is not http or https with a host and nothing more than a path, for a key
  // that fits no header, and for one that would go unencrypted to another machine.
  static absl::StatusOr<std::unique_ptr<LlmClient>> Create(const LlmClientOptions& options);
  LlmClient(const LlmClient&) = delete;
  LlmClient& operator=(const LlmClient&) = delete;
  ~LlmClient();

  // Any HTTP status is a reply. DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED for a reply over its limit; CANCELLED
  // within about a second of `unwanted()`; UNAVAILABLE, in words without addresses, where there is no reply.
  absl::StatusOr<LlmHttpReply> Post(const std::string& body, absl::Time deadline,
                                    const std::function<bool()>& unwanted);

 private:
  class Connections;

  LlmClient(const LlmClientOptions& options, std::string endpoint);

  const LlmClientOptions options_;
  const std::string endpoint_;
  const std::unique_ptr<Connections> connections_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_LLM_JUDGE_LLM_CLIENT_H_
