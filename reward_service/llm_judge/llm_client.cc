#include "reward_service/llm_judge/llm_client.h"

#include <curl/curl.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr char kPath[] = "/chat/completions";
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);

// One part of a parsed URL; empty where it has none.
std::string Part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool IsThisMachine(const std::string& host) {
  return host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.");
}

// The checked URL that requests go to.
absl::StatusOr<std::string> Endpoint(const LlmClientOptions& options) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), &curl_url_cleanup);
  const std::string shown = Escape(options.url, 256);
  if (curl_url_set(url.get(), CURLUPART_URL, options.url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) {
    return absl::InvalidArgumentError(absl::StrCat("\"", shown, "\" is no URL; write http://HOST:PORT/v1"));
  }
  const std::string scheme = Part(url.get(), CURLUPART_SCHEME), host = Part(url.get(), CURLUPART_HOST);
  if ((scheme != "http" && scheme != "https") || host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", shown, "\" is neither http:// nor https:// of a host"));
  }
  if (host == "0.0.0.0" || host == "[::]") {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", shown, "\": ", host, " is where a server listens, on all interfaces; write the name ",
        "or address of its machine, localhost on the same one"));
  }
  for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    if (Part(url.get(), part).empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the URL of ", host, " has more than a path; a key belongs into api_key_file"));
  }
  if (scheme == "http" && !options.api_key.empty() && !IsThisMachine(host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", shown, "\" would carry the key unencrypted to another machine: use https"));
  }
  const absl::string_view base = absl::StripSuffix(options.url, "/");
  return absl::EndsWith(base, kPath) ? std::string(base) : absl::StrCat(base, kPath);
}

// One exchange on its way: where its bytes go, and when it stops.
struct Transfer {
  const LlmClientOptions* options = nullptr;
  const std::function<bool()>* unwanted = nullptr;
  std::string body;
  int64_t header_bytes = 0;
  bool too_large = false;
};

size_t TakeBody(char* bytes, size_t, size_t num_bytes, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const int64_t total = static_cast<int64_t>(transfer->body.size() + num_bytes);
  transfer->too_large |= total > transfer->options->reply_bytes_max;
  if (transfer->too_large) return 0;
  transfer->body.append(bytes, num_bytes);
  return num_bytes;
}

size_t TakeHeader(char*, size_t, size_t num_bytes, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->header_bytes += static_cast<int64_t>(num_bytes);
  transfer->too_large |= transfer->header_bytes > transfer->options->header_bytes_max;
  return transfer->too_large ? 0 : num_bytes;
}

int StopUnwanted(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<Transfer*>(user)->unwanted)() ? 1 : 0;
}

// This process starts sandboxes, and none of them may inherit a connection.
curl_socket_t OpenSocket(void*, curlsocktype, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Writing to a connection that the other side closed is an error like others, not the end of the process.
void BlockPipeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

template <typename Value>
void Set(CURL* handle, CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(handle, option, value);
  WS_CHECK(code == CURLE_OK) << "option " << static_cast<int>(option) << ": " << curl_easy_strerror(code);
}

absl::Status ToStatus(CURLcode code, const Transfer& transfer) {
  if (transfer.too_large) return absl::ResourceExhaustedError("the reply is over its limit");
  if (code == CURLE_OPERATION_TIMEDOUT) return absl::DeadlineExceededError("timed out");
  if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError("not wanted any more");
  return absl::UnavailableError(curl_easy_strerror(code));
}

}  // namespace

// Handles that nobody uses now, each with the connections that it keeps.
class LlmClient::Connections {
 public:
  Connections(const LlmClientOptions& options, const std::string& endpoint) : endpoint_(endpoint) {
    Add("Content-Type: application/json");
    Add("Accept: application/json");
    Add("Expect:");  // no round trip before the body
    if (!options.api_key.empty()) Add(absl::StrCat("Authorization: Bearer ", options.api_key));
  }
  ~Connections() {
    absl::MutexLock lock(&mutex_);
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
    curl_slist_free_all(headers_);
  }

  // Null without memory.
  CURL* Take() {
    {
      absl::MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        CURL* const handle = idle_.back();
        idle_.pop_back();
        return handle;
      }
    }
    CURL* const handle = curl_easy_init();
    if (handle != nullptr) SetUp(handle);
    return handle;
  }

  void GiveBack(CURL* handle) {
    absl::MutexLock lock(&mutex_);
    idle_.push_back(handle);
  }

 private:
  void Add(const std::string& header) {
    curl_slist* const longer = curl_slist_append(headers_, header.c_str());
    WS_CHECK(longer != nullptr) << "out of memory";
    headers_ = longer;
  }

  void SetUp(CURL* handle) const {
    Set(handle, CURLOPT_URL, endpoint_.c_str());
    Set(handle, CURLOPT_HTTPHEADER, headers_);
    Set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    Set(handle, CURLOPT_FOLLOWLOCATION, 0L);
    Set(handle, CURLOPT_PROXY, "");  // or http_proxy would say where keys and programs go
    Set(handle, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    Set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(handle, CURLOPT_NOSIGNAL, 1L);
    Set(handle, CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs is not waited for beyond the deadline
    Set(handle, CURLOPT_NOPROGRESS, 0L);
    Set(handle, CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
    Set(handle, CURLOPT_WRITEFUNCTION, &TakeBody);
    Set(handle, CURLOPT_HEADERFUNCTION, &TakeHeader);
    Set(handle, CURLOPT_XFERINFOFUNCTION, &StopUnwanted);
  }

  const std::string endpoint_;
  curl_slist* headers_ = nullptr;
  absl::Mutex mutex_;
  std::vector<CURL*> idle_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<LlmClient>> LlmClient::Create(const LlmClientOptions& options) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) return absl::InternalError(curl_easy_strerror(initialised));
  ASSIGN_OR_RETURN(std::string endpoint, Endpoint(options));
  const auto fits_no_header = [](char c) { return c <= ' ' || c > '~'; };
  if (std::any_of(options.api_key.begin(), options.api_key.end(), fits_no_header)) {
    return absl::InvalidArgumentError("the API key has characters that no header can carry");
  }
  return std::unique_ptr<LlmClient>(new LlmClient(options, std::move(endpoint)));
}

LlmClient::LlmClient(const LlmClientOptions& options, std::string endpoint)
    : options_(options),
      endpoint_(std::move(endpoint)),
      connections_(std::make_unique<Connections>(options_, endpoint_)) {}

LlmClient::~LlmClient() = default;

absl::StatusOr<LlmHttpReply> LlmClient::Post(const std::string& body, absl::Time deadline,
                                             const std::function<bool()>& unwanted) {
  const absl::Duration left = deadline - absl::Now();
  if (left < absl::Milliseconds(1)) return absl::DeadlineExceededError("timed out");
  BlockPipeSignal();
  CURL* const handle = connections_->Take();
  if (handle == nullptr) return absl::UnavailableError("out of memory");
  Transfer transfer{.options = &options_, .unwanted = &unwanted};
  Set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  Set(handle, CURLOPT_POSTFIELDS, body.data());
  Set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(left)));
  Set(handle, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(std::min(left, kConnectTimeout))));
  Set(handle, CURLOPT_WRITEDATA, &transfer);
  Set(handle, CURLOPT_HEADERDATA, &transfer);
  Set(handle, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl_easy_perform(handle);
  long status = 0;
  curl_off_t retry_after_seconds = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &retry_after_seconds);
  connections_->GiveBack(handle);
  if (code != CURLE_OK) return ToStatus(code, transfer);
  return LlmHttpReply{static_cast<int>(status), std::move(transfer.body),
                      absl::Seconds(std::max<curl_off_t>(0, retry_after_seconds))};
}

}  // namespace warpsmith
