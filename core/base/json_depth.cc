#include "core/base/json_depth.h"

namespace warpsmith {

bool NestsDeeperThan(std::string_view json, int depth_max) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      in_text = !in_text;
    } else if (in_text) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > depth_max) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

bool HasNul(std::string_view json) { return json.find('\0') != std::string_view::npos; }

}  // namespace warpsmith
