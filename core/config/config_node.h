// A configuration file as a tree that remembers where everything was written.
#ifndef WARPSMITH_CORE_CONFIG_CONFIG_NODE_H_
#define WARPSMITH_CORE_CONFIG_CONFIG_NODE_H_

#include <string>
#include <string_view>
#include <vector>

namespace warpsmith {

struct ConfigNode {
  // kPlain is a scalar without quotes: a number, true, false or a bare word. kQuoted is always text.
  enum class Kind { kNull, kPlain, kQuoted, kSequence, kMapping };

  Kind kind = Kind::kNull;
  std::string text;                  // of a scalar
  std::vector<ConfigNode> children;  // of a sequence or mapping, in the order written
  std::string key;                   // within a mapping, else empty
  std::string key_place;             // "file:line:column" of the key
  std::string place;                 // "file:line:column" of the value, or the --set it came from

  // The child of a mapping with this key, or null.
  const ConfigNode* Find(std::string_view child_key) const;
  ConfigNode* Find(std::string_view child_key);
};

// "a number", "text", "a list", ... for messages: what the node is, with its text if it is a scalar.
std::string DescribeNode(const ConfigNode& node);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CONFIG_CONFIG_NODE_H_
