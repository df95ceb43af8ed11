// Whether a program that does not compile on one tier of headers can compile on another.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_REFUSAL_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_REFUSAL_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_set>

#include "absl/status/statusor.h"

namespace warpsmith {

// Every identifier that stands anywhere in torch/extension.h, macros and what it includes among them: what is
// not one of these, no header declares.
class HeaderNames {
 public:
  // Of a file with a name a line; errors are those of the file.
  static absl::StatusOr<HeaderNames> Load(const std::filesystem::path& path);

  bool Contains(std::string_view name) const { return names_.count(std::string(name)) > 0; }

 private:
  std::unordered_set<std::string> names_;
};

// False where every error in `diagnostics` is the program's own: broken grammar, or a name that no header
// has; or where one says that the program defines its module twice. A `names` of null knows nothing, and then no
// missing name is the program's own fault.
bool MayNeedOtherHeaders(std::string_view diagnostics, const HeaderNames* names);

// `diagnostics` without the errors about names that some header has: where a program is refused before its headers
// were, these are not its own.
std::string WithoutKnownNames(std::string_view diagnostics, const HeaderNames& names);

// Whether an error in `diagnostics` is about a name that these headers do not have either.
bool LacksAName(std::string_view diagnostics, const HeaderNames& names);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_REFUSAL_H_
