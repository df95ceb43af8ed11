// The values of an enum of the contracts by the names that files, terminals and configurations use.
#ifndef WARPSMITH_PROTO_ENUM_NAMES_H_
#define WARPSMITH_PROTO_ENUM_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace warpsmith {

// "cpp" of CANDIDATE_LANGUAGE_CPP: without what all values begin with, in small letters. Empty for 0, which says
// nothing, and for a value that is none of the list.
std::string EnumName(const google::protobuf::EnumDescriptor& values, int value);

// The value of exactly this name; 0 for any other text.
int EnumOfName(const google::protobuf::EnumDescriptor& values, std::string_view name);

// All names, in the order of the values.
std::vector<std::string> EnumNames(const google::protobuf::EnumDescriptor& values);

// "cpp, kernelbench_python or cuda": for messages.
std::string AllEnumNames(const google::protobuf::EnumDescriptor& values);

}  // namespace warpsmith

#endif  // WARPSMITH_PROTO_ENUM_NAMES_H_
