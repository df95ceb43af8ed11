#include "reward_service/grading/tenants.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr size_t kTokenBytesMin = 16;
constexpr int64_t kTokenFileBytesMax = 4096;
constexpr std::string_view kScheme = "Bearer ";

absl::StatusOr<std::string> ReadToken(const TenantOptions& options) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.token_file, kTokenFileBytesMax));
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.size() >= kTokenBytesMin) return token;
  return absl::InvalidArgumentError(absl::StrCat(options.token_file.string(), ": the token of tenant ",
                                                 options.name, " has ", token.size(), " bytes, fewer than ",
                                                 kTokenBytesMin, "; make one: openssl rand -hex 32"));
}

// The token of "Bearer TOKEN"; the scheme's name in any case (RFC 9110, section 11.1).
std::string TokenOf(const std::string& authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, absl::string_view(kScheme.data(), kScheme.size())))
    return "";
  return std::string(absl::StripAsciiWhitespace(authorization.substr(kScheme.size())));
}

}  // namespace

absl::StatusOr<Tenants> Tenants::Load(const std::vector<TenantOptions>& options, int queue_capacity) {
  Tenants tenants;
  if (options.empty()) {
    tenants.everybody_ = std::make_shared<const Tenant>(Tenant{"default", queue_capacity, 1.0});
    return tenants;
  }
  const int equal_part = std::max(1, queue_capacity / static_cast<int>(options.size()));
  for (const TenantOptions& option : options) {
    const auto tenant = std::make_shared<const Tenant>(
        Tenant{option.name, option.requests_max > 0 ? option.requests_max : equal_part, option.share});
    tenants.by_name_[option.name] = tenant;
    if (option.token_file.empty()) continue;
    ASSIGN_OR_RETURN(const std::string token, ReadToken(option));
    const auto [other, is_new] = tenants.by_token_sha256_.emplace(Sha256Hex(token), tenant);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat("tenants ", other->second->name, " and ", option.name,
                                                     " have the same token; make another for one of them"));
    }
  }
  return tenants;
}

absl::StatusOr<std::shared_ptr<const Tenant>> Tenants::Identify(const Credentials& credentials) const {
  if (everybody_ != nullptr) return everybody_;
  if (!credentials.authorization.empty()) {
    const auto found = by_token_sha256_.find(Sha256Hex(TokenOf(credentials.authorization)));
    if (found != by_token_sha256_.end()) return found->second;
    return absl::UnauthenticatedError(
        "this service does not know the token; send authorization: Bearer TOKEN");
  }
  if (const auto found = by_name_.find(credentials.certificate_name); found != by_name_.end()) {
    return found->second;
  }
  return absl::UnauthenticatedError(
      "no token and no certificate of a tenant; send the header authorization: Bearer TOKEN");
}

}  // namespace warpsmith
