// YAML text to ConfigNode and back. The subset that a reader can see through: no anchors, aliases, merge keys
// or tags, no key twice, one document.
#ifndef WARPSMITH_CORE_CONFIG_YAML_TEXT_H_
#define WARPSMITH_CORE_CONFIG_YAML_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/config/config_node.h"

namespace warpsmith {

// Parses `text`; places read "<name>:<line>:<column>", from 1. Empty text is a null node. INVALID_ARGUMENT
// with the place of the first thing that is not YAML or outside the subset.
absl::StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view name);

// Block-style YAML that ParseYaml reads back to the same tree, places aside.
std::string FormatYaml(const ConfigNode& node);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CONFIG_YAML_TEXT_H_
