// Checks JSON text that another program sent, before it is parsed.
#ifndef WARPSMITH_CORE_BASE_JSON_DEPTH_H_
#define WARPSMITH_CORE_BASE_JSON_DEPTH_H_

#include <string_view>

namespace warpsmith {

// Deeper than any message, task or file of ours.
constexpr int kJsonDepthMax = 64;

// Whether the text opens more than `depth_max` lists and objects within each other. A parser may take any
// depth, but copying, comparing and writing what it made recurse, until the stack ends: JSON of others is
// asked first. Of text that is no JSON the answer means nothing.
bool NestsDeeperThan(std::string_view json, int depth_max = kJsonDepthMax);

// Returns whether the text has a NUL byte, which no JSON has: the parser takes it for the end and does not see what
// follows.
bool HasNul(std::string_view json);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_JSON_DEPTH_H_
