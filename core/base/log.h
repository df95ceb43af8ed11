// Logging of every process: one line an event, "time level thread message", to standard error.
#ifndef WARPSMITH_CORE_BASE_LOG_H_
#define WARPSMITH_CORE_BASE_LOG_H_

#include <string>
#include <string_view>

namespace warpsmith {

// Sets format and level ("debug", "info", "warning", "error") for the process. Call once, first thing in
// main.
void SetUpLogging(std::string_view process_name, std::string_view level);

// Text of others made safe for a log line or a message: control characters and non-UTF-8 bytes as \xNN, cut
// to `bytes_max` with a mark.
std::string Escape(std::string_view text, size_t bytes_max = 4096);

void LogDebug(std::string_view message);
void LogInfo(std::string_view message);
void LogWarning(std::string_view message);
void LogError(std::string_view message);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_LOG_H_
