#include "rollout_workers/openai_api/request_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "rollout_workers/openai_api/api_error.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownBytesMax = 100;

std::string Shown(const Json& value) {
  return Escape(value.dump(-1, ' ', false, Json::error_handler_t::replace), kShownBytesMax);
}

}  // namespace

const Json* RequestFields::Take(const std::string& name) {
  known_.insert(name);
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> RequestFields::Bool(const std::string& name) {
  const Json* const value = Take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  Fail(name, absl::StrCat("is ", Shown(*value), "; give true or false"));
  return std::nullopt;
}

std::optional<int64_t> RequestFields::Integer(const std::string& name, int64_t min, int64_t max) {
  const Json* const value = Take(name);
  if (value == nullptr) return std::nullopt;
  const bool is_small =
      !value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
  if (value->is_number_integer() && is_small) {
    const auto number = value->get<int64_t>();
    if (number >= min && number <= max) return number;
  }
  Fail(name, absl::StrCat("is ", Shown(*value), "; give an integer from ", min, " to ", max));
  return std::nullopt;
}

std::optional<double> RequestFields::Number(const std::string& name, double min, double max) {
  const Json* const value = Take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= min && number <= max) return number;
  }
  Fail(name, absl::StrCat("is ", Shown(*value), "; give a number from ", min, " to ", max));
  return std::nullopt;
}

std::optional<std::string> RequestFields::String(const std::string& name) {
  const Json* const value = Take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  Fail(name, absl::StrCat("is ", Shown(*value), "; give a text"));
  return std::nullopt;
}

void RequestFields::Only(const std::string& name, std::initializer_list<Json> harmless,
                         std::string_view why) {
  const Json* const value = Take(name);
  if (value == nullptr || std::find(harmless.begin(), harmless.end(), *value) != harmless.end()) return;
  Fail(name, absl::StrCat("is ", Shown(*value), ": ", AbslView(why)));
}

void RequestFields::Ignore(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
}

void RequestFields::Fail(const std::string& name, std::string_view message) {
  if (fault_.ok()) fault_ = FieldError(prefix_ + name, message);
}

absl::Status RequestFields::Finish() {
  for (const auto& [name, value] : object_->items()) {
    if (value.is_null() || known_.count(name) > 0) continue;
    Fail(Escape(name, kShownBytesMax), "is not known here, and may change the answer: leave it out");
  }
  return fault_;
}

}  // namespace warpsmith::openai
