#include "reward_service/llm_judge/llm_judge.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

// Four reasons of 25 words take about 300 tokens; a model that thinks first needs more.
constexpr int kReplyTokensMax = 2048;
constexpr int kSeed = 1;
constexpr char kRepeatRequest[] =
    "\n\nAn earlier reply could not be used. Reply with the JSON object alone, with all four dimensions.";

Json ScoreSchema() {
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", {"score", "reason"}},
          {"properties",
           {{"score", {{"type", "integer"}, {"enum", {1, 2, 3, 4, 5}}}}, {"reason", {{"type", "string"}}}}}};
}

Json ReplySchema() {
  Json properties = Json::object(), required = Json::array();
  for (const char* dimension : kLlmDimensions) {
    properties[dimension] = ScoreSchema();
    required.push_back(dimension);
  }
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", required},
          {"properties", properties}};
}

// Parses one JSON value that fills `text`; discarded where it is none, or an object has a key twice.
Json ParseStrictly(std::string_view text) {
  std::vector<std::set<std::string>> open;
  bool repeated = false;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      repeated = true;
    return true;
  };
  Json parsed = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  return repeated ? Json(Json::value_t::discarded) : parsed;
}

// `text` in printable ASCII, everything else as JSON escapes it, cut.
std::string EscapeReason(const std::string& text) {
  const std::string quoted = Json(text).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  std::string reason = quoted.substr(1, quoted.size() - 2);
  if (reason.size() <= kLlmReasonBytesMax) return reason;
  reason.resize(kLlmReasonBytesMax - 3);
  return reason + "...";
}

absl::Status Invalid(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("reply not valid: ", what));
}

absl::StatusOr<LlmScore> ParseScore(const Json& row, const std::string& dimension) {
  if (!row.is_object() || row.size() != 2 || !row.contains("score") || !row.contains("reason")) {
    return Invalid(dimension + " is no object of score and reason");
  }
  const Json& score = row["score"];
  if (!score.is_number_integer()) return Invalid(dimension + " has a score that is no integer");
  // Read as unsigned too: a number over 2^63 would wrap around.
  const bool in_range =
      score.is_number_unsigned() && score.get<uint64_t>() >= 1 && score.get<uint64_t>() <= 5;
  if (!in_range) return Invalid(dimension + " has a score outside 1 to 5");
  if (!row["reason"].is_string()) return Invalid(dimension + " has a reason that is no text");
  return LlmScore{static_cast<int>(score.get<uint64_t>()), EscapeReason(row["reason"].get<std::string>())};
}

// What the model itself wrote, out of the envelope.
absl::StatusOr<std::string> Content(std::string_view body) {
  const Json envelope = Json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (!envelope.is_object()) return Invalid("no JSON object");
  const auto choices = envelope.find("choices");
  if (choices == envelope.end() || !choices->is_array() || choices->size() != 1 ||
      !(*choices)[0].is_object()) {
    return Invalid("not one choice");
  }
  const Json& choice = (*choices)[0];
  if (choice.contains("finish_reason") && choice["finish_reason"] == "length")
    return Invalid("cut at its length");
  const auto message = choice.find("message");
  if (message == choice.end() || !message->is_object() || !message->contains("content") ||
      !(*message)["content"].is_string()) {
    return Invalid("no text in its message");
  }
  return (*message)["content"].get<std::string>();
}

std::array<v1::RubricScore*, 4> Rows(v1::Rubric* rubric) {
  return {rubric->mutable_anti_hacking(), rubric->mutable_engineering(), rubric->mutable_operator_coverage(),
          rubric->mutable_skill_compliance()};
}

}  // namespace

std::string LlmRequestBody(const LlmMessages& messages, const std::string& model, LlmReplyFormat format,
                           int attempt) {
  const std::string user = attempt == 0 ? messages.user : messages.user + kRepeatRequest;
  Json body = {{"model", model},
               {"messages",
                {{{"role", "system"}, {"content", messages.system}}, {{"role", "user"}, {"content", user}}}},
               {"temperature", 0},
               {"seed", kSeed + attempt},
               {"max_tokens", kReplyTokensMax},
               {"stream", false}};
  if (format == LlmReplyFormat::kJsonObject) body["response_format"] = {{"type", "json_object"}};
  if (format == LlmReplyFormat::kJsonSchema) {
    body["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "rubric"}, {"strict", true}, {"schema", ReplySchema()}}}};
  }
  return body.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

absl::StatusOr<LlmOpinion> ParseLlmReply(std::string_view body) {
  ASSIGN_OR_RETURN(const std::string content, Content(body));
  const Json reply = ParseStrictly(content);
  if (reply.is_discarded()) return Invalid("its text is not JSON alone");
  if (!reply.is_object() || reply.size() != kLlmDimensions.size()) return Invalid("not the four dimensions");
  LlmOpinion opinion;
  for (size_t i = 0; i < kLlmDimensions.size(); ++i) {
    if (!reply.contains(kLlmDimensions[i])) return Invalid(absl::StrCat("no ", kLlmDimensions[i]));
    ASSIGN_OR_RETURN(opinion.scores[i], ParseScore(reply[kLlmDimensions[i]], kLlmDimensions[i]));
  }
  return opinion;
}

void LowerRubric(const LlmOpinion& opinion, v1::Rubric* rubric) {
  const std::string tables = rubric->source();
  if (!opinion.failure.empty()) {
    rubric->set_source(absl::StrCat("llm failed: ", opinion.failure, "; ", tables, " stands"));
    return;
  }
  int total = 0;
  const std::array<v1::RubricScore*, 4> rows = Rows(rubric);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i]->set_table_score(rows[i]->score());
    rows[i]->set_llm_score(opinion.scores[i].score);
    rows[i]->set_llm_reason(opinion.scores[i].reason);
    rows[i]->set_score(std::min(rows[i]->score(), opinion.scores[i].score));
    total += rows[i]->score();
  }
  rubric->set_total(total);
  rubric->set_source(absl::StrCat("llm over ", tables));
}

}  // namespace warpsmith
