#include "core/config/config_node.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace warpsmith {

const ConfigNode* ConfigNode::Find(std::string_view child_key) const {
  if (kind != Kind::kMapping) return nullptr;
  const auto has_key = [&](const ConfigNode& child) { return child.key == child_key; };
  const auto found = std::find_if(children.begin(), children.end(), has_key);
  return found == children.end() ? nullptr : &*found;
}

ConfigNode* ConfigNode::Find(std::string_view child_key) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode*>(this)->Find(child_key));
}

std::string DescribeNode(const ConfigNode& node) {
  constexpr size_t kShownBytesMax = 100;
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kPlain:
      return Escape(node.text, kShownBytesMax);
    case ConfigNode::Kind::kQuoted:
      return absl::StrCat("the text \"", Escape(node.text, kShownBytesMax), "\"");
    case ConfigNode::Kind::kSequence:
      return absl::StrCat("a list of ", node.children.size());
    case ConfigNode::Kind::kMapping:
      return absl::StrCat("a section of ", node.children.size(),
                          node.children.size() == 1 ? " key" : " keys");
  }
  return "";
}

}  // namespace warpsmith
