#include "core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>

namespace warpsmith {
namespace {

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
  if (cut) text = text.substr(0, bytes_max);
  std::string safe;
  safe.reserve(text.size() + 16);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      safe += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {
      char hex[5];
      std::snprintf(hex, sizeof(hex), "\\x%02x", byte);
      safe += hex;
    } else {
      safe.push_back(c);
    }
  }
  if (cut) safe += "...";
  return safe;
}

void LogDebug(std::string_view message) { spdlog::debug("{}", View(message)); }
void LogInfo(std::string_view message) { spdlog::info("{}", View(message)); }
void LogWarning(std::string_view message) { spdlog::warn("{}", View(message)); }
void LogError(std::string_view message) { spdlog::error("{}", View(message)); }

}  // namespace warpsmith
