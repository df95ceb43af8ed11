#include "reward_service/jail/fields.h"

namespace warpsmith {

std::string Read(const nlohmann::json& fields, const TextField& field) {
  const auto found = fields.find(field.name);
  if (found == fields.end() || !found->is_string()) return "";
  return found->get_ref<const std::string&>().substr(0, field.bytes_max);
}

int64_t Read(const nlohmann::json& fields, const IntegerField& field) {
  const auto found = fields.find(field.name);
  if (found == fields.end() || !found->is_number_integer()) return field.otherwise;
  if (found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{INT64_MAX}) return field.otherwise;
  const int64_t value = found->get<int64_t>();
  return value >= field.low && value <= field.high ? value : field.otherwise;
}

double Read(const nlohmann::json& fields, const NumberField& field) {
  const auto found = fields.find(field.name);
  if (found == fields.end() || !found->is_number()) return field.otherwise;
  const double value = found->get<double>();
  return value >= field.low && value <= field.high ? value : field.otherwise;
}

bool Read(const nlohmann::json& fields, const BooleanField& field) {
  const auto found = fields.find(field.name);
  return found != fields.end() && found->is_boolean() && found->get<bool>();
}

const nlohmann::json* Find(const nlohmann::json& fields, const ListField& field) {
  const auto found = fields.find(field.name);
  const bool is_list = found != fields.end() && found->is_array() && found->size() <= field.num_max;
  return is_list ? &*found : nullptr;
}

const nlohmann::json* Find(const nlohmann::json& fields, const AnyField& field) {
  const auto found = fields.find(field.name);
  return found != fields.end() ? &*found : nullptr;
}

}  // namespace warpsmith
