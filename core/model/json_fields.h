// Fields of a config.json, read one at a time with errors that name them.
#ifndef WARPSMITH_CORE_MODEL_JSON_FIELDS_H_
#define WARPSMITH_CORE_MODEL_JSON_FIELDS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"

namespace warpsmith {

inline absl::Status InvalidField(std::string_view field, std::string_view value, std::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("model config: ", AbslView(field), " is ",
                                                 Escape(value, 200), ", but must be ", AbslView(wanted)));
}

enum class Presence { kOptional, kRequired };

// Leaves `*value` as it is where the field is absent or null.
template <typename Value>
absl::Status ReadField(const nlohmann::json& json, const char* field, Presence presence, Value* value) {
  const auto found = json.find(field);
  if (found == json.end() || found->is_null()) {
    return presence == Presence::kRequired ? InvalidField(field, "missing", "given") : absl::OkStatus();
  }
  if constexpr (std::is_same_v<Value, bool>) {
    if (!found->is_boolean()) return InvalidField(field, found->dump(), "a boolean");
  } else {
    const bool fits = std::is_same_v<Value, double> ? found->is_number() : found->is_number_integer();
    if (!fits) return InvalidField(field, found->dump(), "a number");
  }
  *value = found->get<Value>();
  return absl::OkStatus();
}

// `field` is absent, null or `allowed`.
inline absl::Status RequireOnly(const nlohmann::json& json, const char* field,
                                const nlohmann::json& allowed) {
  const auto found = json.find(field);
  if (found == json.end() || found->is_null() || *found == allowed) return absl::OkStatus();
  return InvalidField(field, found->dump(), absl::StrCat(allowed.dump(), ": nothing else is implemented"));
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_JSON_FIELDS_H_
