// Numbers and truth values between text and C++, without locale and without leniency.
#ifndef WARPSMITH_CORE_CONFIG_SCALAR_TEXT_H_
#define WARPSMITH_CORE_CONFIG_SCALAR_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace warpsmith {

// "-12", "+3". Nothing for anything else, or out of int64.
std::optional<int64_t> ParseInteger(std::string_view text);

// "1", "-0.5", "1e-3". Nothing for anything else, infinities and NaN included.
std::optional<double> ParseReal(std::string_view text);

// "true" and "false" only.
std::optional<bool> ParseTruth(std::string_view text);

// The shortest text that ParseReal reads back to the same value.
std::string FormatReal(double value);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CONFIG_SCALAR_TEXT_H_
