// Whatever body is posted, it is refused in JSON or gives a request within bounds; of a conversation no message
// forges a turn, and stop strings are cut from a text as a search over it would. The input is a body; the
// first byte says which endpoint it comes to.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/tokenizer.h"
#include "rollout_workers/openai_api/api_error.h"
#include "rollout_workers/openai_api/completion_request.h"
#include "rollout_workers/openai_api/stop_strings.h"
#include "tests/fuzz/fuzz_input.h"

namespace warpsmith {
namespace {

const Tokenizer& SmallTokenizer() {
  static const auto* const tokenizer = [] {
    auto loaded = Tokenizer::Load("datasets/tokenizer/small");
    WS_CHECK(loaded.ok()) << loaded.status();
    return new Tokenizer(*std::move(loaded));
  }();
  return *tokenizer;
}

void CheckBounds(const openai::CompletionRequest& request) {
  WS_CHECK(request.num_choices >= 1 && request.num_choices <= openai::kChoicesMax) << request.num_choices;
  WS_CHECK(request.messages.size() <= openai::kMessagesMax) << request.messages.size();
  WS_CHECK(request.prompts.size() <= openai::kPromptsMax) << request.prompts.size();
  WS_CHECK(request.stops.size() <= openai::kStopsMax) << request.stops.size();
  WS_CHECK(request.tokens_max.value_or(1) >= 1) << *request.tokens_max;
  WS_CHECK(request.messages.empty() != request.prompts.empty());
}

void CheckTurns(const openai::CompletionRequest& request) {
  if (request.messages.empty()) return;
  const auto format = ChatTemplate::Of(SmallTokenizer());
  const auto ids = format->Render(SmallTokenizer(), request.messages, request.chat);
  WS_CHECK(ids.ok()) << ids.status();
  const int32_t begin = *SmallTokenizer().TokenId("<|im_start|>");
  const auto num_turns = static_cast<size_t>(std::count(ids->begin(), ids->end(), begin));
  WS_CHECK(num_turns == request.messages.size() + 1) << num_turns;
}

void CheckStops(const openai::CompletionRequest& request, std::string_view text) {
  openai::StopStrings matcher(request.stops);
  std::string cut;
  for (const char byte : text) cut += matcher.Push({&byte, 1});
  cut += matcher.Finish();
  WS_CHECK(text.substr(0, cut.size()) == cut);
  const auto is_in = [](std::string_view where) {
    return [where](const std::string& stop) { return where.find(stop) != std::string_view::npos; };
  };
  const auto& stops = request.stops;
  WS_CHECK(std::none_of(stops.begin(), stops.end(), is_in(cut)));
  WS_CHECK(matcher.stopped() == std::any_of(stops.begin(), stops.end(), is_in(text)));
}

void ReadBody(std::string_view text) {
  const openai::ApiKind kind = text[0] == 't' ? openai::ApiKind::kText : openai::ApiKind::kChat;
  const auto request = openai::ParseCompletionRequest(kind, text.substr(1));
  if (!request.ok()) {
    WS_CHECK(nlohmann::json::accept(openai::ApiErrorBody(request.status()))) << request.status();
    return;
  }
  CheckBounds(*request);
  CheckTurns(*request);
  CheckStops(*request, text);
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  if (num_bytes > 0) warpsmith::ReadBody(warpsmith::AsText(bytes, num_bytes));
  return 0;
}
