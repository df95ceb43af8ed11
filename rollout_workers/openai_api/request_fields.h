// Reads the fields of a JSON object, each by its type and within its bounds, and finds those that no reader asked for.
#ifndef WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_REQUEST_FIELDS_H_
#define WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_REQUEST_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpsmith::openai {

// A field that is null counts as absent, as clients send it for what they do not set. Readers give nothing
// for an absent field and for one at fault; Finish() tells of the first fault. Not thread-safe.
class RequestFields {
 public:
  // `object` is a JSON object and must outlive this; `prefix` stands before the names in errors.
  explicit RequestFields(const nlohmann::json* object, std::string prefix = "")
      : object_(object), prefix_(std::move(prefix)) {}

  // The value itself; null: absent.
  const nlohmann::json* Take(const std::string& name);
  std::optional<bool> Bool(const std::string& name);
  std::optional<int64_t> Integer(const std::string& name, int64_t min, int64_t max);
  std::optional<double> Number(const std::string& name, double min, double max);
  std::optional<std::string> String(const std::string& name);

  // A field that we know and that may have no other value than one of these, which change nothing.
  void Only(const std::string& name, std::initializer_list<nlohmann::json> harmless, std::string_view why);
  // Fields that change nothing whatever they are.
  void Ignore(std::initializer_list<const char*> names);

  // Notes a fault of a field.
  void Fail(const std::string& name, std::string_view message);

  // The first fault, or the first field that was neither read nor ignored.
  absl::Status Finish();

 private:
  const nlohmann::json* const object_;
  const std::string prefix_;
  std::set<std::string> known_;
  absl::Status fault_;
};

}  // namespace warpsmith::openai

#endif  // WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_REQUEST_FIELDS_H_
