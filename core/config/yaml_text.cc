#include "core/config/yaml_text.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

// Builds the tree from yaml-cpp's events, which still show what its own Node hides: duplicate keys, aliases
// and quotes. After the first error everything else is ignored.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string_view name) : name_(name) {}

  const absl::Status& status() const { return status_; }
  ConfigNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Refuse(mark, "?", anchor);
    Add({.kind = ConfigNode::Kind::kNull, .place = Place(mark)}, mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "aliases (*name) are not allowed: write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Refuse(mark, tag, anchor);
    // yaml-cpp tags a scalar in quotes or a block scalar with "!".
    const auto kind = tag == "!" ? ConfigNode::Kind::kQuoted : ConfigNode::Kind::kPlain;
    Add({.kind = kind, .text = value, .place = Place(mark)}, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Refuse(mark, tag, anchor);
    Open(ConfigNode::Kind::kSequence, mark);
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Refuse(mark, tag, anchor);
    Open(ConfigNode::Kind::kMapping, mark);
  }

  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  // A sequence or mapping under construction. `key` waits for its value.
  struct Frame {
    ConfigNode node;
    std::string key;
    std::string key_place;
    bool has_key = false;
  };

  std::string Place(const YAML::Mark& mark) const {
    return absl::StrCat(name_, ":", mark.line + 1, ":", mark.column + 1);
  }

  void Fail(const YAML::Mark& mark, std::string_view message) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(Place(mark), ": ", AbslView(message)));
  }

  void Refuse(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) Fail(mark, "anchors (&name) are not allowed: write the value out");
    if (!tag.empty() && tag != "?" && tag != "!") Fail(mark, "tags (!name) are not allowed");
  }

  bool ExpectsKey() const {
    return !frames_.empty() && frames_.back().node.kind == ConfigNode::Kind::kMapping &&
           !frames_.back().has_key;
  }

  void Open(ConfigNode::Kind kind, const YAML::Mark& mark) {
    if (!status_.ok()) return;
    if (ExpectsKey()) return Fail(mark, "a key must be a name, not a list or a section");
    frames_.push_back({.node = {.kind = kind, .place = Place(mark)}});
  }

  void Close() {
    if (!status_.ok()) return;
    ConfigNode node = std::move(frames_.back().node);
    frames_.pop_back();
    Attach(std::move(node));
  }

  void Add(ConfigNode node, const YAML::Mark& mark) {
    if (!status_.ok()) return;
    if (!ExpectsKey()) return Attach(std::move(node));
    SetKey(node, mark);
  }

  void SetKey(const ConfigNode& key, const YAML::Mark& mark) {
    Frame& frame = frames_.back();
    if (key.kind == ConfigNode::Kind::kNull) return Fail(mark, "a key must be a name");
    if (key.text == "<<") return Fail(mark, "merge keys (<<) are not allowed: write the values out");
    if (const ConfigNode* first = frame.node.Find(key.text)) {
      return Fail(mark,
                  absl::StrCat("the key \"", Escape(key.text), "\" was given before, at ", first->key_place));
    }
    frame.key = key.text;
    frame.key_place = key.place;
    frame.has_key = true;
  }

  void Attach(ConfigNode node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    node.key = std::exchange(frame.key, "");
    node.key_place = std::exchange(frame.key_place, "");
    frame.has_key = false;
    frame.node.children.push_back(std::move(node));
  }

  const std::string name_;
  absl::Status status_;
  ConfigNode root_;
  std::vector<Frame> frames_;
};

void Emit(const ConfigNode& node, YAML::Emitter& out) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      out << YAML::Null;
      break;
    case ConfigNode::Kind::kPlain:
      out << node.text;
      break;
    case ConfigNode::Kind::kQuoted:
      out << YAML::DoubleQuoted << node.text;
      break;
    case ConfigNode::Kind::kSequence:
      out << YAML::Flow << YAML::BeginSeq;
      for (const ConfigNode& child : node.children) Emit(child, out);
      out << YAML::EndSeq;
      break;
    case ConfigNode::Kind::kMapping:
      out << (node.children.empty() ? YAML::Flow : YAML::Block) << YAML::BeginMap;
      for (const ConfigNode& child : node.children) {
        out << YAML::Key << child.key << YAML::Value;
        Emit(child, out);
      }
      out << YAML::EndMap;
      break;
  }
}

}  // namespace

absl::StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view name) {
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(name);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (builder.status().ok() && parser.HandleNextDocument(builder)) {
      return absl::InvalidArgumentError(absl::StrCat(AbslView(name), ": holds more than one YAML document"));
    }
  } catch (const YAML::Exception& error) {
    if (!builder.status().ok()) return builder.status();
    return absl::InvalidArgumentError(absl::StrCat(AbslView(name), ":", error.mark.line + 1, ":",
                                                   error.mark.column + 1, ": not YAML: ", error.msg));
  }
  if (!builder.status().ok()) return builder.status();
  return builder.TakeRoot();
}

std::string FormatYaml(const ConfigNode& node) {
  YAML::Emitter out;
  Emit(node, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace warpsmith
