#include "reward_service/server/page_door.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/server/http_error.h"
#include "reward_service/server/json_text.h"

namespace warpsmith {
namespace {

constexpr char kOnePrefix[] = "/v1/recent/";
constexpr int64_t kFileBytesMax = 1 << 20;
constexpr size_t kListMax = 200;

// Scripts and styles come from these files alone: text of candidates cannot run even where it became markup.
constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

std::string ContentTypeOf(const std::string& path) {
  if (absl::EndsWith(path, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(path, ".css")) return "text/css; charset=utf-8";
  return "text/html; charset=utf-8";
}

std::optional<std::string> Get(const std::map<std::string, std::string>& query, const std::string& name) {
  const auto found = query.find(name);
  if (found == query.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

absl::Status ReadNumber(const std::map<std::string, std::string>& query, const std::string& name,
                        std::optional<double>* number) {
  const std::optional<std::string> text = Get(query, name);
  if (!text.has_value()) return absl::OkStatus();
  if (absl::SimpleAtod(*text, &number->emplace()) && !std::isnan(**number)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is no number: ", Escape(*text, 64)));
}

absl::StatusOr<RecentGradeFilter> ParseFilter(const Tenant& tenant,
                                              const std::map<std::string, std::string>& query) {
  RecentGradeFilter filter{.tenant = tenant.name, .hack_family = Get(query, "hack_family")};
  if (const std::optional<std::string> verdict = Get(query, "verdict"); verdict.has_value()) {
    if (!v1::Verdict_Parse(*verdict, &filter.verdict.emplace())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "verdict ", Escape(*verdict, 64), " is not known; one is ", v1::Verdict_Name(v1::VERDICT_CORRECT)));
    }
  }
  RETURN_IF_ERROR(ReadNumber(query, "reward_min", &filter.reward_min));
  RETURN_IF_ERROR(ReadNumber(query, "reward_max", &filter.reward_max));
  std::optional<double> before, num;
  RETURN_IF_ERROR(ReadNumber(query, "before", &before));
  RETURN_IF_ERROR(ReadNumber(query, "num", &num));
  if (before.has_value()) filter.before = static_cast<int64_t>(std::clamp(*before, 0.0, 9e15));
  if (num.has_value()) filter.num_max = static_cast<size_t>(std::clamp<double>(*num, 1, kListMax));
  return filter;
}

nlohmann::json Line(const RecentGrade& recent) {
  const v1::Grade& grade = recent.grade;
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", recent.time, absl::UTCTimeZone());
  nlohmann::json line = {{"sequence", recent.sequence},
                         {"time", time},
                         {"requestId", recent.prepared->request.request_id()},
                         {"taskId", grade.task_id()},
                         {"verdict", v1::Verdict_Name(grade.verdict())},
                         {"verdictReason", grade.verdict_reason()},
                         {"hackFamily", grade.hack_family()},
                         {"speedup", grade.timing().speedup()},
                         {"cached", grade.cached()},
                         {"totalSeconds", grade.cost().total_seconds()}};
  line["reward"] = grade.reward().has_value() ? nlohmann::json(grade.reward().value()) : nlohmann::json();
  return line;
}

// What programs wrote may be no UTF-8, which JSON has to be.
std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<PageFiles> ReadPageFiles(const std::filesystem::path& directory) {
  PageFiles files;
  for (const auto& [path, name] :
       {std::pair("/", "index.html"), std::pair("/page.js", "page.js"), std::pair("/page.css", "page.css")}) {
    ASSIGN_OR_RETURN(files[path], ReadFile(directory / name, kFileBytesMax));
  }
  return files;
}

bool PageDoor::HandleFile(const std::shared_ptr<HttpExchange>& exchange) const {
  const auto file = files_.find(exchange->request().path);
  if (file == files_.end()) return false;
  exchange->Respond({.content_type = ContentTypeOf(file->first),
                     .headers = {{"Content-Security-Policy", kContentPolicy}, {"Cache-Control", "no-cache"}},
                     .body = file->second});
  return true;
}

bool PageDoor::HandleData(const Tenant& tenant, const std::shared_ptr<HttpExchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  if (request.path == "/v1/status") {
    exchange->Respond(Status(tenant));
  } else if (request.path == "/v1/recent") {
    exchange->Respond(List(tenant, request.query));
  } else if (absl::StartsWith(request.path, kOnePrefix)) {
    exchange->Respond(One(tenant, request.path.substr(sizeof(kOnePrefix) - 1)));
  } else {
    return false;
  }
  return true;
}

HttpResponse PageDoor::Status(const Tenant& tenant) const {
  const Backlog backlog = reception_->backlog();
  nlohmann::json verdicts = nlohmann::json::object();
  for (const auto& [verdict, count] : reception_->recent().VerdictCounts(tenant.name)) {
    verdicts[v1::Verdict_Name(verdict)] = count;
  }
  return {.body = Dump({{"tenant", tenant.name},
                        {"numRequests", backlog.num_requests},
                        {"numToCompile", backlog.num_to_compile},
                        {"numToJudge", backlog.num_to_judge},
                        {"verdicts", verdicts}})};
}

HttpResponse PageDoor::List(const Tenant& tenant, const std::map<std::string, std::string>& query) const {
  const absl::StatusOr<RecentGradeFilter> filter = ParseFilter(tenant, query);
  if (!filter.ok()) return ErrorResponse(filter.status());
  nlohmann::json lines = nlohmann::json::array();
  for (const auto& recent : reception_->recent().List(*filter)) lines.push_back(Line(*recent));
  return {.body = Dump({{"grades", lines}})};
}

HttpResponse PageDoor::One(const Tenant& tenant, const std::string& sequence) const {
  int64_t number = 0;
  const std::shared_ptr<const RecentGrade> found =
      absl::SimpleAtoi(sequence, &number) ? reception_->recent().Find(tenant.name, number) : nullptr;
  if (found == nullptr) {
    return ErrorResponse(absl::NotFoundError(
        absl::StrCat("grade ", Escape(sequence, 32), " is not among the latest of ", tenant.name)));
  }
  return {.body = absl::StrCat("{\"line\":", Dump(Line(*found)), ",\"request\":",
                               ToJson(found->prepared->request), ",\"grade\":", ToJson(found->grade), "}")};
}

}  // namespace warpsmith
