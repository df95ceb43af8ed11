#include "core/config/config_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/absl_view.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/nearest_name.h"
#include "core/config/yaml_text.h"

namespace warpsmith {
namespace {

using Kind = ConfigNode::Kind;

constexpr int64_t kFileBytesMax = 1 << 20;

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string UnknownSection(const std::string& name, const std::vector<std::string>& known_sections) {
  return absl::StrCat(Escape(name, 100), ": is not a known section", SuggestName(name, known_sections));
}

absl::Status CheckTopLevel(const ConfigNode& root, const std::vector<std::string>& known_sections) {
  std::vector<std::string> errors;
  for (const ConfigNode& section : root.children) {
    if (!Contains(known_sections, section.key)) {
      errors.push_back(absl::StrCat(section.key_place, ": ", UnknownSection(section.key, known_sections)));
    } else if (section.kind != Kind::kMapping && section.kind != Kind::kNull) {
      errors.push_back(absl::StrCat(section.place, ": ", section.key, ": must be a section, but is ",
                                    DescribeNode(section)));
    }
  }
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

// The child `key` of a mapping, made if absent.
ConfigNode& FindOrAdd(ConfigNode& mapping, const std::string& key, const std::string& place) {
  if (ConfigNode* found = mapping.Find(key)) return *found;
  mapping.children.push_back({.key = key, .key_place = place, .place = place});
  return mapping.children.back();
}

// Adds the scalars and lists at and below `node`, whose key is `path`.
void CollectValues(const ConfigNode& node, const std::string& path,
                   std::map<std::string, std::string>& values) {
  if (node.kind == Kind::kMapping) {
    for (const ConfigNode& child : node.children) {
      CollectValues(child, absl::StrCat(path, ".", child.key), values);
    }
    return;
  }
  std::string text = FormatYaml(node);
  if (!text.empty()) text.pop_back();  // the newline
  values[path] = std::move(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConfigFile>> ConfigFile::Load(const std::filesystem::path& path,
                                                             const std::vector<std::string>& known_sections,
                                                             const std::vector<std::string>& assignments) {
  std::string text;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(text, ReadFile(path, kFileBytesMax));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ConfigFile> file,
                   Parse(text, path.empty() ? "defaults" : path.string(), known_sections));
  for (const std::string& assignment : assignments) RETURN_IF_ERROR(file->Override(assignment));
  return file;
}

absl::StatusOr<std::unique_ptr<ConfigFile>> ConfigFile::Parse(
    std::string_view text, std::string_view name, const std::vector<std::string>& known_sections) {
  ASSIGN_OR_RETURN(ConfigNode root, ParseYaml(text, name));
  if (root.kind == Kind::kNull) root.kind = Kind::kMapping;
  if (root.kind != Kind::kMapping) {
    return absl::InvalidArgumentError(
        absl::StrCat(root.place, ": must hold sections, but is ", DescribeNode(root)));
  }
  RETURN_IF_ERROR(CheckTopLevel(root, known_sections));
  return std::unique_ptr<ConfigFile>(new ConfigFile(std::move(root), std::string(name), known_sections));
}

ConfigFile::ConfigFile(ConfigNode root, std::string name, std::vector<std::string> known_sections)
    : root_(std::move(root)), name_(std::move(name)), known_sections_(std::move(known_sections)) {}

absl::Status ConfigFile::Override(std::string_view assignment) {
  WS_CHECK(sections_.empty()) << "overrides come before reading";
  const std::string place = absl::StrCat("--set ", Escape(assignment, 200));
  const size_t equals = assignment.find('=');
  const std::vector<std::string> keys = absl::StrSplit(AbslView(assignment.substr(0, equals)), '.');
  if (equals == std::string_view::npos || keys.size() < 2 || Contains(keys, "")) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": must read section.key=value"));
  }
  if (!Contains(known_sections_, keys[0])) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", UnknownSection(keys[0], known_sections_)));
  }
  ASSIGN_OR_RETURN(ConfigNode value, ParseYaml(assignment.substr(equals + 1), place));
  if (value.kind == Kind::kMapping) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": the value must not be a section; set its keys"));
  }
  value.place = place;
  return SetValue(keys, std::move(value));
}

absl::Status ConfigFile::SetValue(const std::vector<std::string>& keys, ConfigNode value) {
  const std::string place = value.place;
  ConfigNode* node = &root_;
  for (const std::string& key : keys) {
    if (node->kind == Kind::kNull) node->kind = Kind::kMapping;
    if (node->kind != Kind::kMapping) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": ", node->key, " is not a section, but ",
                                                     DescribeNode(*node), ", at ", node->place));
    }
    node = &FindOrAdd(*node, key, place);
  }
  if (node->kind == Kind::kMapping) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", node->key, " is a section; set its keys"));
  }
  value.key = node->key;
  value.key_place = place;
  *node = std::move(value);
  return absl::OkStatus();
}

ConfigSection& ConfigFile::Section(std::string_view name) {
  WS_CHECK(Contains(known_sections_, name)) << name;
  std::unique_ptr<ConfigSection>& section = sections_[std::string(name)];
  if (section == nullptr) {
    section = std::make_unique<ConfigSection>(root_.Find(name), std::string(name), name_);
  }
  return *section;
}

absl::Status ConfigFile::Finish() const {
  std::vector<std::string> errors;
  for (const std::string& name : known_sections_) {
    const auto read = sections_.find(name);
    if (read == sections_.end()) continue;
    const absl::Status status = read->second->Finish();
    if (!status.ok()) errors.emplace_back(status.message());
  }
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

std::string ConfigFile::ResolvedYaml(const std::vector<std::string>& sections) const {
  return FormatYaml(Resolved(sections));
}

std::map<std::string, std::string> ConfigFile::ResolvedValues(
    const std::vector<std::string>& sections) const {
  std::map<std::string, std::string> values;
  for (const ConfigNode& section : Resolved(sections).children) CollectValues(section, section.key, values);
  return values;
}

ConfigNode ConfigFile::Resolved(const std::vector<std::string>& sections) const {
  ConfigNode resolved{.kind = Kind::kMapping};
  for (const std::string& name : sections) {
    const auto read = sections_.find(name);
    const ConfigNode* written = root_.Find(name);
    if (read == sections_.end() && written == nullptr) continue;
    resolved.children.push_back(read != sections_.end() ? read->second->Resolved() : *written);
    resolved.children.back().key = name;
  }
  return resolved;
}

std::string ConfigFile::Reference(const std::vector<std::string>& sections) const {
  std::string lines;
  for (const std::string& name : sections) {
    const auto read = sections_.find(name);
    if (read != sections_.end()) lines += read->second->Reference();
  }
  return lines;
}

}  // namespace warpsmith
