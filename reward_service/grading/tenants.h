// Who may ask for grades, and how much of the service is theirs.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_TENANTS_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_TENANTS_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

struct TenantOptions {
  std::string name;
  // File with the secret that its requests carry; blanks around it do not count. Empty: the tenant shows a
  // certificate in its name instead.
  std::filesystem::path token_file;
  // Requests that may wait; 0: an equal part of the queue.
  int requests_max = 0;
  // Time of lanes and compile workers, in proportion to other tenants', while several have work waiting.
  double share = 1.0;
};

struct Tenant {
  std::string name;
  int requests_max = 0;
  double share = 1.0;
};

// What a caller shows.
struct Credentials {
  std::string authorization;     // of the header or metadata of that name: "Bearer TOKEN"
  std::string certificate_name;  // common name of a certificate that the handshake verified
};

// Immutable, so thread-safe.
class Tenants {
 public:
  // Without options everybody is one tenant, "default", who has the whole queue. INVALID_ARGUMENT: a token
  // shorter than 16 bytes, or of two tenants; otherwise what reading a token file says.
  static absl::StatusOr<Tenants> Load(const std::vector<TenantOptions>& options, int queue_capacity);

  // By token, else by certificate. UNAUTHENTICATED, saying what to send, for anybody else.
  absl::StatusOr<std::shared_ptr<const Tenant>> Identify(const Credentials& credentials) const;

 private:
  using TenantsByKey = std::map<std::string, std::shared_ptr<const Tenant>>;

  std::shared_ptr<const Tenant> everybody_;
  TenantsByKey by_token_sha256_;  // looked up by digest: what a guess costs tells nothing of the token
  TenantsByKey by_name_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_TENANTS_H_
