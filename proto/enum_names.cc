#include "proto/enum_names.h"

namespace warpsmith {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;

constexpr std::string_view kNothing = "UNSPECIFIED";  // how the value 0 of every enum ends

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string EnumName(const EnumDescriptor& values, int value) {
  const EnumValueDescriptor* const found = values.FindValueByNumber(value);
  if (value == 0 || found == nullptr) return "";
  const size_t prefix = values.FindValueByNumber(0)->name().size() - kNothing.size();
  std::string name = found->name().substr(prefix);
  for (char& c : name) c = Lower(c);
  return name;
}

int EnumOfName(const EnumDescriptor& values, std::string_view name) {
  if (name.empty()) return 0;
  for (int i = 0; i < values.value_count(); ++i) {
    const int value = values.value(i)->number();
    if (EnumName(values, value) == name) return value;
  }
  return 0;
}

std::vector<std::string> EnumNames(const EnumDescriptor& values) {
  std::vector<std::string> names;
  for (int i = 0; i < values.value_count(); ++i) {
    std::string name = EnumName(values, values.value(i)->number());
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

std::string AllEnumNames(const EnumDescriptor& values) {
  const std::vector<std::string> names = EnumNames(values);
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) all.append(i + 1 < names.size() ? ", " : " or ");
    all.append(names[i]);
  }
  return all;
}

}  // namespace warpsmith
