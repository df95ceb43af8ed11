#include "reward_service/grading/llm_stage.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "reward_service/grading/merge.h"

namespace warpsmith {
namespace {

constexpr int kAttemptsMax = 2;
// Before a request is repeated to an endpoint that failed and does not say how long to wait.
constexpr absl::Duration kRepeatDelay = absl::Milliseconds(500);
constexpr size_t kLoggedBytesMax = 256;

// 128 random bits in hex: a mark that no text written before can hold.
std::string MakeNonce() {
  char bytes[16];
  const ssize_t num_bytes = getrandom(bytes, sizeof(bytes), 0);
  WS_CHECK(num_bytes == static_cast<ssize_t>(sizeof(bytes))) << "getrandom gave " << num_bytes << " bytes";
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

const char* ResultOf(const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status)) return "timeout";
  if (absl::IsCancelled(status)) return "cancelled";
  return absl::IsResourceExhausted(status) ? "oversized" : "unreachable";
}

bool MayRepeat(int http_status) {
  constexpr int kTimeout = 408, kTooManyRequests = 429, kServerError = 500;
  return http_status == kTimeout || http_status == kTooManyRequests || http_status >= kServerError;
}

}  // namespace

bool LlmStage::Wants(const PreparedRequest& prepared, const v1::Measurement& measurement) {
  return measurement.grade().verdict() == v1::VERDICT_CORRECT &&
         MergeGrade(prepared, measurement).verdict() == v1::VERDICT_CORRECT;
}

void LlmStage::Run(Flight* flight) {
  const PreparedRequest& prepared = *flight->prepared;
  const v1::Grade grade = MergeGrade(prepared, flight->measurement);
  const LlmQuestion question{&prepared.request.task(), prepared.request.candidate().language(),
                             prepared.source, &grade};
  const auto unwanted = [this, flight] { return flight->cancelled || Stopped(); };
  const LlmOpinion opinion = Ask(question, flight->queued_since + options_.timeout, unwanted);
  if (!opinion.failure.empty()) {
    LogWarning(absl::StrCat("no opinion of the LLM judge on ", prepared.source_sha256.substr(0, 12), ": ",
                            opinion.failure));
  }
  flight->opinion = std::make_shared<const LlmOpinion>(opinion);
  flight->measurement.mutable_grade()->mutable_cost()->set_llm_judge_seconds(
      absl::ToDoubleSeconds(absl::Now() - flight->queued_since));
}

LlmOpinion LlmStage::Ask(const LlmQuestion& question, absl::Time deadline,
                         const std::function<bool()>& unwanted) {
  if (Paused(absl::Now())) {
    observer_("paused");
    return {.failure = "not asked, for the endpoint failed several times in a row"};
  }
  if (absl::Now() >= deadline) {
    observer_("no_turn");
    return {.failure = "no turn in time"};
  }
  const LlmMessages messages = prompt_.Render(question, MakeNonce());
  Attempt made;
  int num_invalid = 0;
  for (int attempt = 1; attempt <= kAttemptsMax; ++attempt) {
    made =
        AskOnce(LlmRequestBody(messages, options_.model, options_.format, num_invalid), deadline, unwanted);
    num_invalid += !made.opinion.ok() && !made.endpoint_failed;
    const bool in_time = absl::Now() + made.wait < deadline;
    if (made.opinion.ok() || !made.may_repeat || !in_time || unwanted() || !Wait(made.wait)) break;
  }
  Note(made.endpoint_failed, absl::Now());
  if (made.opinion.ok()) return *std::move(made.opinion);
  return {.failure = std::string(made.opinion.status().message())};
}

LlmStage::Attempt LlmStage::AskOnce(const std::string& body, absl::Time deadline,
                                    const std::function<bool()>& unwanted) const {
  const absl::StatusOr<LlmHttpReply> reply = post_(body, deadline, unwanted);
  if (reply.ok()) return ReadReply(*reply);
  observer_(ResultOf(reply.status()));
  const bool unreachable = absl::IsUnavailable(reply.status());
  return {.opinion = reply.status(),
          .endpoint_failed = !absl::IsCancelled(reply.status()),
          .may_repeat = unreachable,
          .wait = kRepeatDelay};
}

LlmStage::Attempt LlmStage::ReadReply(const LlmHttpReply& reply) const {
  constexpr int kOk = 200;
  if (reply.status != kOk) {
    observer_("http_error");
    LogWarning(
        absl::StrCat("the LLM judge answers HTTP ", reply.status, ": ", Escape(reply.body, kLoggedBytesMax)));
    return {.opinion = absl::UnavailableError(absl::StrCat("HTTP ", reply.status)),
            .endpoint_failed = true,
            .may_repeat = MayRepeat(reply.status),
            .wait = std::max(reply.retry_after, kRepeatDelay)};
  }
  Attempt made{.opinion = ParseLlmReply(reply.body), .may_repeat = true};
  observer_(made.opinion.ok() ? "ok" : "invalid_reply");
  return made;
}

bool LlmStage::Wait(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopped_), duration);
}

bool LlmStage::Stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

void LlmStage::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

bool LlmStage::Paused(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  return now < paused_until_;
}

void LlmStage::Note(bool endpoint_failed, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  num_failures_ = endpoint_failed ? num_failures_ + 1 : 0;
  if (num_failures_ < options_.num_failures_max) return;
  paused_until_ = now + options_.pause;
}

std::string LlmJudgeKey(const std::string& url, const LlmStageOptions& options, const LlmPrompt& prompt) {
  constexpr size_t kDigits = 16;
  return Sha256Hex(absl::StrCat(url, "\n", options.model, "\n", static_cast<int>(options.format), "\n",
                                prompt.sha256()))
      .substr(0, kDigits);
}

}  // namespace warpsmith
