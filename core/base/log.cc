#include "core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

#include "core/base/utf8.h"

namespace warpsmith {
namespace {

// Of one character of valid UTF-8, or one byte that is none.
bool IsPrintable(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first >= 0x20 && first < 0x7f;
  const bool is_c1_control = first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return !is_c1_control;
}

std::string HexOf(char byte) {
  char hex[5];
  std::snprintf(hex, sizeof(hex), "\\x%02x", static_cast<unsigned char>(byte));
  return hex;
}

spdlog::string_view_t View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

void SetUpLogging(std::string_view process_name, std::string_view level) {
  auto logger = std::make_shared<spdlog::logger>(std::string(process_name),
                                                 std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %n[%t] %v");
  logger->set_level(spdlog::level::from_str(std::string(level)));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

std::string Escape(std::string_view text, size_t bytes_max) {
  const bool cut = text.size() > bytes_max;
  text = CutUtf8(text, bytes_max);
  std::string safe;
  safe.reserve(text.size() + 16);
  while (!text.empty()) {
    const size_t length = std::max<size_t>(1, Utf8CharacterLength(text));
    if (text[0] == '\n') {
      safe += "\\n";
    } else if (IsPrintable(text.substr(0, length))) {
      safe += text.substr(0, length);
    } else {
      for (const char c : text.substr(0, length)) safe += HexOf(c);
    }
    text.remove_prefix(length);
  }
  if (cut) safe += "...";
  return safe;
}

void LogDebug(std::string_view message) { spdlog::debug("{}", View(message)); }
void LogInfo(std::string_view message) { spdlog::info("{}", View(message)); }
void LogWarning(std::string_view message) { spdlog::warn("{}", View(message)); }
void LogError(std::string_view message) { spdlog::error("{}", View(message)); }

}  // namespace warpsmith
