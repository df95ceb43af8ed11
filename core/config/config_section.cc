#include "core/config/config_section.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/absl_view.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/config/nearest_name.h"
#include "core/config/scalar_text.h"
#include "core/config/yaml_text.h"

namespace warpsmith {
namespace {

using Kind = ConfigNode::Kind;

std::string Wanted(IntegerRange range) {
  const IntegerRange any;
  if (range.min == any.min && range.max == any.max) return "an integer";
  if (range.max == any.max) return absl::StrCat("an integer of at least ", range.min);
  if (range.min == any.min) return absl::StrCat("an integer of at most ", range.max);
  return absl::StrCat("an integer from ", range.min, " to ", range.max);
}

std::string Wanted(RealRange range) {
  const RealRange any;
  std::string text = "a number";
  if (range.min != any.min)
    absl::StrAppend(&text, range.min_excluded ? " above " : " of at least ", FormatReal(range.min));
  if (range.min != any.min && range.max != any.max) text += " and";
  if (range.max != any.max)
    absl::StrAppend(&text, range.max_excluded ? " below " : " of at most ", FormatReal(range.max));
  return text;
}

std::optional<int64_t> ConvertInteger(const ConfigNode& node, IntegerRange range) {
  if (node.kind != Kind::kPlain) return std::nullopt;
  const std::optional<int64_t> value = ParseInteger(node.text);
  if (!value.has_value() || *value < range.min || *value > range.max) return std::nullopt;
  return value;
}

std::optional<double> ConvertReal(const ConfigNode& node, RealRange range) {
  if (node.kind != Kind::kPlain) return std::nullopt;
  const std::optional<double> value = ParseReal(node.text);
  if (!value.has_value()) return std::nullopt;
  if (*value < range.min || (range.min_excluded && *value == range.min)) return std::nullopt;
  if (*value > range.max || (range.max_excluded && *value == range.max)) return std::nullopt;
  return value;
}

std::optional<bool> ConvertTruth(const ConfigNode& node) {
  return node.kind == Kind::kPlain ? ParseTruth(node.text) : std::nullopt;
}

// A bare 2.11 or true is a number or a truth value in YAML, and the author may have meant that.
std::optional<std::string> ConvertText(const ConfigNode& node) {
  if (node.kind == Kind::kQuoted) return node.text;
  if (node.kind != Kind::kPlain || ParseReal(node.text) || ParseTruth(node.text)) return std::nullopt;
  return node.text;
}

ConfigNode NodeOf(int64_t value) { return {.kind = Kind::kPlain, .text = absl::StrCat(value)}; }
ConfigNode NodeOf(double value) { return {.kind = Kind::kPlain, .text = FormatReal(value)}; }
ConfigNode NodeOf(bool value) { return {.kind = Kind::kPlain, .text = value ? "true" : "false"}; }
ConfigNode NodeOf(const std::string& value) { return {.kind = Kind::kQuoted, .text = value}; }

template <typename T>
ConfigNode NodeOf(const std::vector<T>& values) {
  ConfigNode node{.kind = Kind::kSequence};
  for (const T& value : values) node.children.push_back(NodeOf(value));
  return node;
}

constexpr std::string_view kWantedText = "text (in quotes if it looks like a number)";
constexpr std::string_view kWantedPath = "a path (in quotes if it looks like a number)";

// What keeps `path` from being read as a file or, with `is_folder`, as a folder; empty if nothing does.
std::string PathFault(const std::filesystem::path& path, bool is_folder) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    const std::string from =
        path.is_relative() ? absl::StrCat(" in ", std::filesystem::current_path(error).string()) : "";
    return absl::StrCat("there is no ", is_folder ? "folder " : "file ", path.string(), from);
  }
  if (std::filesystem::is_directory(status) != is_folder) {
    return absl::StrCat(path.string(), " is a ", is_folder ? "file, not a folder" : "folder, not a file");
  }
  return access(path.c_str(), R_OK) == 0 ? "" : absl::StrCat("this user may not read ", path.string());
}

}  // namespace

ConfigSection::ConfigSection(const ConfigNode* node, std::string path, std::string file)
    : node_(node), path_(std::move(path)), file_(std::move(file)) {
  if (node_ == nullptr || node_->kind == Kind::kMapping || node_->kind == Kind::kNull) return;
  errors_.push_back(
      absl::StrCat(node_->place, ": ", path_, ": must be a section, but is ", DescribeNode(*node_)));
}

void ConfigSection::Read(std::string_view key, int64_t* value, IntegerRange range, KeyHelp help) {
  ReadScalar(key, value, Wanted(range), help,
             [&](const ConfigNode& node) { return ConvertInteger(node, range); });
}

void ConfigSection::Read(std::string_view key, int* value, IntegerRange range, KeyHelp help) {
  range.min = std::max<int64_t>(range.min, std::numeric_limits<int>::min());
  range.max = std::min<int64_t>(range.max, std::numeric_limits<int>::max());
  int64_t wide = *value;
  Read(key, &wide, range, help);
  *value = static_cast<int>(wide);
}

void ConfigSection::Read(std::string_view key, double* value, RealRange range, KeyHelp help) {
  ReadScalar(key, value, Wanted(range), help,
             [&](const ConfigNode& node) { return ConvertReal(node, range); });
}

void ConfigSection::Read(std::string_view key, bool* value, KeyHelp help) {
  ReadScalar(key, value, "true or false", help, ConvertTruth);
}

void ConfigSection::Read(std::string_view key, std::string* value, KeyHelp help) {
  ReadScalar(key, value, kWantedText, help, ConvertText);
}

void ConfigSection::Read(std::string_view key, std::filesystem::path* value, KeyHelp help) {
  std::string text = value->string();
  ReadScalar(key, &text, kWantedPath, help, ConvertText);
  *value = text;
}

void ConfigSection::Read(std::string_view key, std::vector<std::string>* values, KeyHelp help) {
  ReadList(key, values, kWantedText, help, ConvertText);
}

void ConfigSection::Read(std::string_view key, std::vector<int64_t>* values, IntegerRange range,
                         KeyHelp help) {
  ReadList(key, values, Wanted(range), help,
           [&](const ConfigNode& node) { return ConvertInteger(node, range); });
}

void ConfigSection::Read(std::string_view key, std::vector<double>* values, RealRange range, KeyHelp help) {
  ReadList(key, values, Wanted(range), help,
           [&](const ConfigNode& node) { return ConvertReal(node, range); });
}

void ConfigSection::ReadChoice(std::string_view key, std::string* value,
                               const std::vector<std::string>& choices, KeyHelp help) {
  const auto convert = [&](const ConfigNode& node) -> std::optional<std::string> {
    const bool known = std::find(choices.begin(), choices.end(), node.text) != choices.end();
    return known ? ConvertText(node) : std::nullopt;
  };
  ReadScalar(key, value, absl::StrCat("one of ", absl::StrJoin(choices, ", ")), help, convert);
}

ConfigSection& ConfigSection::Section(std::string_view key, std::string_view meaning) {
  for (Child& child : children_) {
    if (child.key == key && child.section != nullptr) return *child.section;
  }
  const ConfigNode* node = Take(key, {"", meaning});
  children_.back().section = std::make_unique<ConfigSection>(node, PathOf(key), file_);
  return *children_.back().section;
}

void ConfigSection::Require(std::string_view key) {
  if (node_ != nullptr && node_->Find(key) != nullptr) return;
  AddErrorAt(node_ == nullptr ? file_ : node_->place, key, "is missing; it has no default");
}

void ConfigSection::RequireFile(std::string_view key, const std::filesystem::path& path,
                                std::string_view way_out) {
  if (path.empty()) return;
  if (const std::string fault = PathFault(path, false); !fault.empty()) {
    AddError(key, absl::StrCat(fault, AbslView(way_out)));
  }
}

void ConfigSection::RequireFolder(std::string_view key, const std::filesystem::path& path,
                                  const std::vector<std::string>& names, std::string_view way_out) {
  if (path.empty()) return;
  std::string fault = PathFault(path, true);
  for (const std::string& name : names) {
    if (fault.empty()) fault = PathFault(path / name, false);
  }
  if (!fault.empty()) AddError(key, absl::StrCat(fault, AbslView(way_out)));
}

void ConfigSection::RequireWritable(std::string_view key, const std::filesystem::path& path) {
  if (path.empty()) return;
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(path, error);
  while (there.has_relative_path() && !std::filesystem::exists(there, error)) there = there.parent_path();
  if (!std::filesystem::is_directory(there, error)) {
    AddError(key, absl::StrCat(there.string(), " is a file, not a folder"));
  } else if (access(there.c_str(), W_OK | X_OK) != 0) {
    const absl::Status status = ErrnoStatus("cannot write to the folder", there.string());
    AddError(key, StdView(status.message()));
  }
}

void ConfigSection::AddError(std::string_view key, std::string_view message) {
  const ConfigNode* node = node_ == nullptr || key.empty() ? node_ : node_->Find(key);
  AddErrorAt(node == nullptr ? file_ : node->place, key, message);
}

std::vector<std::string> ConfigSection::WrittenKeys() const {
  std::vector<std::string> keys;
  if (node_ == nullptr) return keys;
  for (const ConfigNode& child : node_->children) keys.push_back(child.key);
  return keys;
}

absl::Status ConfigSection::Finish() const {
  std::vector<std::string> errors;
  CollectErrors(&errors);
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

ConfigNode ConfigSection::Resolved() const {
  ConfigNode resolved{.kind = Kind::kMapping};
  for (const Child& child : children_) {
    resolved.children.push_back(child.section != nullptr ? child.section->Resolved() : child.resolved);
    resolved.children.back().key = child.key;
  }
  return resolved;
}

std::string ConfigSection::Reference() const {
  std::string lines;
  for (const Child& child : children_) {
    std::string value = child.section == nullptr ? FormatYaml(child.resolved) : "";
    if (!value.empty()) value.pop_back();  // the newline
    absl::StrAppend(&lines, PathOf(child.key), "\t", value, "\t",
                    child.section == nullptr ? child.wanted : "a section", "\t", child.unit, "\t",
                    child.meaning, "\n");
    if (child.section != nullptr) lines += child.section->Reference();
  }
  return lines;
}

template <typename T, typename Convert>
void ConfigSection::ReadScalar(std::string_view key, T* value, std::string_view wanted, KeyHelp help,
                               Convert convert) {
  const ConfigNode* node = Take(key, help);
  children_.back().wanted = wanted;
  if (node != nullptr) {
    if (std::optional<T> converted = convert(*node)) {
      *value = *std::move(converted);
    } else {
      AddErrorAt(node->place, key,
                 absl::StrCat("must be ", AbslView(wanted), ", but is ", DescribeNode(*node)));
    }
  }
  Resolve(key, NodeOf(*value));
}

template <typename T, typename Convert>
void ConfigSection::ReadList(std::string_view key, std::vector<T>* values, std::string_view wanted,
                             KeyHelp help, Convert convert) {
  const auto convert_all = [&](const ConfigNode& node) -> std::optional<std::vector<T>> {
    if (node.kind != Kind::kSequence) return std::nullopt;
    std::vector<T> converted;
    for (const ConfigNode& child : node.children) {
      std::optional<T> element = convert(child);
      if (!element.has_value()) {
        AddErrorAt(child.place, key,
                   absl::StrCat("holds ", DescribeNode(child), " as element ", converted.size()));
        return std::nullopt;
      }
      converted.push_back(*std::move(element));
    }
    return converted;
  };
  ReadScalar(key, values, absl::StrCat("a list, each ", AbslView(wanted)), help, convert_all);
}

const ConfigNode* ConfigSection::Take(std::string_view key, KeyHelp help) {
  for (const Child& child : children_) WS_CHECK(child.key != key) << path_ << "." << key << " is read twice";
  children_.push_back(
      {.key = std::string(key), .unit = std::string(help.unit), .meaning = std::string(help.meaning)});
  return node_ == nullptr ? nullptr : node_->Find(key);
}

void ConfigSection::Resolve(std::string_view key, ConfigNode resolved) {
  WS_CHECK(!children_.empty() && children_.back().key == key);
  children_.back().resolved = std::move(resolved);
}

void ConfigSection::AddErrorAt(const std::string& place, std::string_view key, std::string_view message) {
  errors_.push_back(absl::StrCat(place, ": ", PathOf(key), ": ", AbslView(message)));
}

void ConfigSection::CollectErrors(std::vector<std::string>* errors) const {
  errors->insert(errors->end(), errors_.begin(), errors_.end());
  std::vector<std::string> known;
  for (const Child& child : children_) known.push_back(child.key);
  for (const Child& child : children_) {
    if (child.section != nullptr) child.section->CollectErrors(errors);
  }
  if (node_ == nullptr || ignores_other_keys_) return;
  for (const ConfigNode& written : node_->children) {
    if (node_->kind != Kind::kMapping || std::find(known.begin(), known.end(), written.key) != known.end())
      continue;
    errors->push_back(absl::StrCat(written.key_place, ": ", PathOf(Escape(written.key, 100)),
                                   ": is not a known key", SuggestName(written.key, known)));
  }
}

std::string ConfigSection::PathOf(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", AbslView(key));
}

}  // namespace warpsmith
