// The packaged Abseil is built with its own string_view, so StrCat and the status factories do not take
// std's.
#ifndef WARPSMITH_CORE_BASE_ABSL_VIEW_H_
#define WARPSMITH_CORE_BASE_ABSL_VIEW_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace warpsmith {

inline absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view StdView(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_ABSL_VIEW_H_
