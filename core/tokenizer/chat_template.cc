#include "core/tokenizer/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/absl_view.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/tokenizer/unicode.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSystemTurn = "<|im_start|>system\n";
constexpr std::string_view kTurnEnd = "<|im_end|>";
constexpr std::string_view kThinkBegin = "<think>";
constexpr std::string_view kThinkEnd = "</think>";
constexpr std::string_view kKnowledgeDate = "Cutting Knowledge Date: December 2023\n";

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What a program in Jinja adds last: how an answer begins.
std::string_view GenerationPrompt(std::string_view jinja) {
  const size_t begin = jinja.rfind("if add_generation_prompt");
  return begin == std::string_view::npos ? std::string_view() : jinja.substr(begin);
}

// Sets the system message that a ChatML program writes out itself, if there is one. False where it writes
// several, or one that is no plain text.
bool ReadDefaultSystem(std::string_view jinja, std::string* message) {
  for (size_t at = jinja.find(kSystemTurn); at != std::string_view::npos; at = jinja.find(kSystemTurn, at)) {
    at += kSystemTurn.size();
    const std::string_view rest = jinja.substr(at);
    if (rest.empty() || rest[0] == '\'' || rest[0] == '"') continue;  // an expression follows
    const std::string_view written = rest.substr(0, rest.find(kTurnEnd));
    const bool is_plain =
        written.size() < rest.size() && written.find_first_of("'\"{}\\") == std::string_view::npos;
    if (!is_plain || (!message->empty() && *message != written)) return false;
    *message = written;
  }
  return true;
}

// As Python's str.strip().
std::string_view Strip(std::string_view text) {
  const auto is_separator = [](char c) { return c >= 0x1c && c <= 0x1f; };
  const auto front = [&] { return !text.empty() && is_separator(text.front()) ? 1 : FirstSpaceLength(text); };
  const auto back = [&] { return !text.empty() && is_separator(text.back()) ? 1 : LastSpaceLength(text); };
  while (const size_t length = front()) text.remove_prefix(length);
  while (const size_t length = back()) text.remove_suffix(length);
  return text;
}

std::string_view StripFrontLines(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::string_view StripBackLines(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

struct ThoughtAndAnswer {
  std::string thought;
  std::string answer;
};

// Qwen3's division of what an assistant said, where its thought is not given apart.
ThoughtAndAnswer Divide(const ChatMessage& message) {
  if (message.reasoning.has_value()) return {*message.reasoning, message.content};
  const std::string_view content = message.content;
  const size_t end = content.find(kThinkEnd);
  if (end == std::string_view::npos) return {"", message.content};
  std::string_view thought = StripBackLines(content.substr(0, end));
  if (const size_t begin = thought.rfind(kThinkBegin); begin != std::string_view::npos) {
    thought.remove_prefix(begin + kThinkBegin.size());
  }
  const std::string_view answer = content.substr(content.rfind(kThinkEnd) + kThinkEnd.size());
  return {std::string(StripFrontLines(thought)), std::string(StripFrontLines(answer))};
}

// Qwen3: what an assistant thought before this message is left out. The last message where no user asks.
size_t LastQuery(const std::vector<ChatMessage>& messages) {
  const auto is_query = [](const ChatMessage& message) {
    const bool is_tool_response = absl::StartsWith(message.content, "<tool_response>") &&
                                  absl::EndsWith(message.content, "</tool_response>");
    return message.role == "user" && !is_tool_response;
  };
  const auto found = std::find_if(messages.rbegin(), messages.rend(), is_query);
  return found == messages.rend() ? messages.size() - 1 : static_cast<size_t>(messages.rend() - found) - 1;
}

std::vector<const char*> ChatMlMarks() { return {"<|im_start|>", "<|im_end|>"}; }

std::vector<const char*> Llama3Marks() {
  return {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
}

absl::Status CheckMessages(const std::vector<ChatMessage>& messages) {
  if (messages.empty()) return absl::InvalidArgumentError("the conversation has no message");
  for (const ChatMessage& message : messages) {
    const std::string& role = message.role;
    if (role == "system" || role == "user" || role == "assistant") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the role \"", Escape(role, 32), "\" is not rendered: send system, user or assistant"));
  }
  return absl::OkStatus();
}

absl::Status Unknown() {
  return absl::UnimplementedError(
      "the checkpoint's chat template is none that is known here (ChatML, Qwen3, Llama 3 and 3.1 to 3.3)");
}

// The template in a tokenizer_config.json: a text, or the one named "default" of several. Empty: none.
std::string TemplateOfConfig(const std::string& text) {
  if (NestsDeeperThan(text)) return "";
  const Json config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("chat_template")) return "";
  const Json& written = config["chat_template"];
  if (written.is_string()) return written;
  if (!written.is_array()) return "";
  for (const Json& each : written) {
    const bool is_default = each.is_object() && each.value("name", Json()) == "default" &&
                            each.value("template", Json()).is_string();
    if (is_default) return each["template"];
  }
  return "";
}

}  // namespace

absl::StatusOr<ChatTemplate> ChatTemplate::Of(const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(ChatTemplate written, Written(tokenizer));
  const bool is_llama = written.family_ == Family::kLlama3 || written.family_ == Family::kLlama3Dated;
  for (const char* const mark : is_llama ? Llama3Marks() : ChatMlMarks()) {
    if (tokenizer.TokenId(mark).has_value()) continue;
    return absl::UnimplementedError(absl::StrCat("the checkpoint's chat template is ", written.name(),
                                                 ", and its tokenizer has no token for the mark ", mark));
  }
  return written;
}

absl::StatusOr<ChatTemplate> ChatTemplate::Written(const Tokenizer& tokenizer) {
  std::string jinja;
  for (const TokenizerFile& file : tokenizer.files()) {
    if (file.name == "chat_template.jinja") return Recognise(file.content);
    if (file.name == "tokenizer_config.json") jinja = TemplateOfConfig(file.content);
  }
  if (!jinja.empty()) return Recognise(jinja);
  if (tokenizer.TokenId("<|im_start|>") && tokenizer.TokenId("<|im_end|>")) return ChatTemplate();
  return absl::UnimplementedError(
      "the checkpoint has no chat template, and its tokenizer has no <|im_start|> and <|im_end|>");
}

absl::StatusOr<ChatTemplate> ChatTemplate::Recognise(std::string_view jinja) {
  ChatTemplate chat_ml, llama3;
  const std::string text = absl::StrReplaceAll(AbslView(jinja), {{"\\n", "\n"}});
  if (chat_ml.RecogniseChatMl(text)) return chat_ml;
  if (llama3.RecogniseLlama3(text)) return llama3;
  return Unknown();
}

bool ChatTemplate::RecogniseChatMl(const std::string& jinja) {
  const std::string_view begin_of_answer = GenerationPrompt(jinja);
  const bool begins_plainly =
      Has(begin_of_answer, "<|im_start|>assistant\n") && !Has(begin_of_answer, "else");
  if (!begins_plainly) return false;
  // What programs like it do more: other system messages, changed contents, a token before all, images.
  for (const char* const other : {"set system_message", "trim", "bos_token", "<|vision_start|>"}) {
    if (Has(jinja, other)) return false;
  }
  if (!ReadDefaultSystem(jinja, &default_system_)) return false;
  if (!Has(jinja, "think")) return true;
  family_ = Family::kQwen3;
  return Has(begin_of_answer, "enable_thinking is false") &&
         Has(begin_of_answer, "'<think>\n\n</think>\n\n'") && Has(jinja, "reasoning_content") &&
         Has(jinja, "if loop.index0 > ns.last_query_index");
}

bool ChatTemplate::RecogniseLlama3(const std::string& jinja) {
  const std::string_view begin_of_answer = GenerationPrompt(jinja);
  const bool is_llama = Has(begin_of_answer, "<|start_header_id|>assistant<|end_header_id|>\n\n") &&
                        !Has(begin_of_answer, "else") && Has(jinja, "<|eot_id|>") && Has(jinja, "| trim") &&
                        Has(jinja, "bos_token") && !Has(jinja, "think");
  family_ = Has(jinja, kKnowledgeDate) ? Family::kLlama3Dated : Family::kLlama3;
  if (!is_llama || family_ == Family::kLlama3) return is_llama && !Has(jinja, "Cutting Knowledge Date");
  if (Has(jinja, "strftime_now")) return true;
  constexpr std::string_view kDate = "set date_string = \"";
  const size_t begin = jinja.find(kDate);
  const size_t end = begin == std::string::npos ? begin : jinja.find('"', begin + kDate.size());
  if (end == std::string::npos) return false;
  fixed_date_ = jinja.substr(begin + kDate.size(), end - begin - kDate.size());
  return true;
}

std::string ChatTemplate::name() const {
  switch (family_) {
    case Family::kChatMl:
      return "ChatML";
    case Family::kQwen3:
      return "Qwen3";
    case Family::kLlama3:
      return "Llama 3";
    case Family::kLlama3Dated:
      return "Llama 3 with dates";
  }
  return "";
}

void ChatTemplate::LayChatMl(const std::vector<ChatMessage>& messages, const ChatOptions& options,
                             Pieces* pieces) const {
  const auto mark = [&](std::string text) { pieces->push_back({std::move(text), SpecialTokens::kParse}); };
  const auto say = [&](std::string text) { pieces->push_back({std::move(text), SpecialTokens::kAsText}); };
  if (messages[0].role != "system" && !default_system_.empty()) {
    mark(absl::StrCat(AbslView(kSystemTurn), default_system_, "<|im_end|>\n"));
  }
  const size_t last_query = LastQuery(messages);
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    mark(absl::StrCat("<|im_start|>", message.role, "\n"));
    if (family_ == Family::kQwen3 && message.role == "assistant") {
      const ThoughtAndAnswer said = Divide(message);
      const bool shows_thought = i > last_query && (i + 1 == messages.size() || !said.thought.empty());
      if (shows_thought) {
        mark("<think>\n");
        say(std::string(StripBackLines(StripFrontLines(said.thought))));
        mark("\n</think>\n\n");
      }
      say(shows_thought ? std::string(StripFrontLines(said.answer)) : said.answer);
    } else {
      say(message.content);
    }
    mark("<|im_end|>\n");
  }
  mark("<|im_start|>assistant\n");
  if (family_ == Family::kQwen3 && !options.enable_thinking) mark("<think>\n\n</think>\n\n");
}

void ChatTemplate::LayLlama3(const std::vector<ChatMessage>& messages, const ChatOptions& options,
                             Pieces* pieces) const {
  const auto mark = [&](std::string text) { pieces->push_back({std::move(text), SpecialTokens::kParse}); };
  const auto say = [&](std::string_view text) {
    pieces->push_back({std::string(Strip(text)), SpecialTokens::kAsText});
  };
  const auto begin_turn = [&](const std::string& role) {
    mark(absl::StrCat("<|start_header_id|>", role, "<|end_header_id|>\n\n"));
  };
  const std::string date = options.date.empty() ? fixed_date_.value_or(options.today) : options.date;
  mark("<|begin_of_text|>");
  size_t next = 0;
  if (family_ == Family::kLlama3Dated) {
    begin_turn("system");
    mark(absl::StrCat(AbslView(kKnowledgeDate), "Today Date: ", date, "\n\n"));
    if (messages[0].role == "system") say(messages[next++].content);
    mark("<|eot_id|>");
  }
  for (; next < messages.size(); ++next) {
    begin_turn(messages[next].role);
    say(messages[next].content);
    mark("<|eot_id|>");
  }
  begin_turn("assistant");
}

absl::StatusOr<ChatTemplate::Pieces> ChatTemplate::Lay(const std::vector<ChatMessage>& messages,
                                                       const ChatOptions& options) const {
  RETURN_IF_ERROR(CheckMessages(messages));
  Pieces pieces;
  const bool is_llama = family_ == Family::kLlama3 || family_ == Family::kLlama3Dated;
  is_llama ? LayLlama3(messages, options, &pieces) : LayChatMl(messages, options, &pieces);
  return pieces;
}

absl::StatusOr<std::vector<int32_t>> ChatTemplate::Render(const Tokenizer& tokenizer,
                                                          const std::vector<ChatMessage>& messages,
                                                          const ChatOptions& options) const {
  ASSIGN_OR_RETURN(const Pieces pieces, Lay(messages, options));
  std::vector<TextPart> parts;
  for (const Piece& piece : pieces) parts.push_back({piece.text, piece.special_tokens});
  return tokenizer.EncodeParts(parts);
}

absl::StatusOr<std::string> ChatTemplate::RenderText(const std::vector<ChatMessage>& messages,
                                                     const ChatOptions& options) const {
  ASSIGN_OR_RETURN(const Pieces pieces, Lay(messages, options));
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace warpsmith
