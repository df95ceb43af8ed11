// What messages are made of: a receiver, and fields, each with a name and the values that the receiver takes, and one
// way to read them. Nothing that a sender writes makes a reader throw, but for fields that are trusted.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_FIELDS_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace warpsmith {

// Who receives a message.
struct ToService {};
struct ToReferee {};
struct ToZygote {};
struct ToOracle {};
struct ToJail {};

// At most `bytes_max` of a text are taken; none is empty.
struct TextField {
  const char* name;
  size_t bytes_max;
};

// What is absent, of another type or outside of [low, high] counts as `otherwise`.
struct IntegerField {
  const char* name;
  int64_t low;
  int64_t high;
  int64_t otherwise;
};

struct NumberField {
  const char* name;
  double low;
  double high;
  double otherwise;
};

// Anything but true is false.
struct BooleanField {
  const char* name;
};

// A longer list, or none, is not there.
struct ListField {
  const char* name;
  size_t num_max;
};

// Of any type: whoever finds it judges it.
struct AnyField {
  const char* name;
};

// From a sender that is believed, as a program of the same build: must be there.
template <typename Type>
struct Trusted {
  const char* name;
};

std::string Read(const nlohmann::json& fields, const TextField& field);
int64_t Read(const nlohmann::json& fields, const IntegerField& field);
double Read(const nlohmann::json& fields, const NumberField& field);
bool Read(const nlohmann::json& fields, const BooleanField& field);
template <typename Type>
Type Read(const nlohmann::json& fields, const Trusted<Type>& field) {
  return fields.at(field.name).template get<Type>();
}

// Null where it is not there.
const nlohmann::json* Find(const nlohmann::json& fields, const ListField& field);
const nlohmann::json* Find(const nlohmann::json& fields, const AnyField& field);

// A field stands for its name where an object is written: {{Run::slot, 1}}.
inline void to_json(nlohmann::json& name, const TextField& field) { name = field.name; }
inline void to_json(nlohmann::json& name, const IntegerField& field) { name = field.name; }
inline void to_json(nlohmann::json& name, const NumberField& field) { name = field.name; }
inline void to_json(nlohmann::json& name, const BooleanField& field) { name = field.name; }
inline void to_json(nlohmann::json& name, const ListField& field) { name = field.name; }
inline void to_json(nlohmann::json& name, const AnyField& field) { name = field.name; }
template <typename Type>
void to_json(nlohmann::json& name, const Trusted<Type>& field) {
  name = field.name;
}

// The field in which every message has its own name, Message::op.
inline constexpr TextField kOp{"op", 16};

// A message with these fields.
template <typename Message>
nlohmann::json Make(nlohmann::json fields = nlohmann::json::object()) {
  fields[kOp.name] = Message::op;
  return fields;
}

template <typename Message>
bool Is(const nlohmann::json& fields) {
  const auto found = fields.find(kOp.name);
  return found != fields.end() && *found == Message::op;
}

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_FIELDS_H_
