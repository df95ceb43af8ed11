// What the page of rewards is made of: its own files, and the grades that it shows.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_PAGE_DOOR_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_PAGE_DOOR_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/rpc/http_server.h"
#include "reward_service/server/reception.h"

namespace warpsmith {

// Contents by path: "/", "/page.js", "/page.css".
using PageFiles = std::map<std::string, std::string>;

// Reads index.html, page.js and page.css of `directory`.
absl::StatusOr<PageFiles> ReadPageFiles(const std::filesystem::path& directory);

// Handles GET requests without blocking. A tenant sees its own grades alone.
//   /v1/status                      backlog, and how often each verdict was given
//   /v1/recent?verdict=&reward_min=&reward_max=&hack_family=&before=&num=   the latest grades, a line each
//   /v1/recent/SEQUENCE             one grade, with its request
class PageDoor {
 public:
  PageDoor(const Reception* reception, PageFiles files) : reception_(reception), files_(std::move(files)) {}

  // Whether the request was for this and has been answered.
  bool HandleFile(const std::shared_ptr<HttpExchange>& exchange) const;
  bool HandleData(const Tenant& tenant, const std::shared_ptr<HttpExchange>& exchange) const;

 private:
  HttpResponse Status(const Tenant& tenant) const;
  HttpResponse List(const Tenant& tenant, const std::map<std::string, std::string>& query) const;
  HttpResponse One(const Tenant& tenant, const std::string& sequence) const;

  const Reception* const reception_;
  const PageFiles files_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_PAGE_DOOR_H_
