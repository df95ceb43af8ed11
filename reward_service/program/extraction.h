// Finds the program in a Coder's answer.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_EXTRACTION_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_EXTRACTION_H_

#include <optional>
#include <string_view>

namespace warpsmith {

// The text after the thinking part: after the last "</think>", or nothing where "<think>" is never closed.
std::string_view AfterThinking(std::string_view answer);

// The content of the last fenced block (CommonMark 0.30, section 4.5: three or more backticks or tildes)
// after the thinking part, without its fences. A block that is never closed runs to the end of the answer.
// Nothing when there is no block or it holds only white space. The view points into `answer`.
std::optional<std::string_view> ExtractProgram(std::string_view answer);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_EXTRACTION_H_
