// Reads one section of a configuration file into variables that hold their defaults.
//
//   ConfigSection& section = file.Section("trainer");
//   section.Read("learning_rate", &options.learning_rate, {.min = 0, .max = 1}, {"", "Of AdamW."});
//   section.Read("num_steps", &options.num_steps, {.min = 1}, {"steps", "After which training ends."});
//   section.Section("checkpoint").Read("directory", &options.checkpoint_directory, {"", "Of checkpoints."});
//   RETURN_IF_ERROR(section.Finish());
//
// The last argument is what the reference of all keys, ConfigFile::Reference(), says of the key.
#ifndef WARPSMITH_CORE_CONFIG_CONFIG_SECTION_H_
#define WARPSMITH_CORE_CONFIG_CONFIG_SECTION_H_

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/config/config_node.h"

namespace warpsmith {

// What an integer may be, ends included.
struct IntegerRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

// What a real number may be. It is finite in any case.
struct RealRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;
  bool max_excluded = false;
};

// What a user reads about a key. A process leaves it away for a key that another process documents.
struct KeyHelp {
  std::string_view unit;     // "seconds"; empty for what has none
  std::string_view meaning;  // a sentence or two, plain text
};

// One mapping of the file. Errors are collected, so that a user sees all of them at once; Finish() returns
// them. Belongs to its ConfigFile, whose life it shares. Not thread-safe.
class ConfigSection {
 public:
  // `node` is the mapping, or null for an absent section; it must outlive this. `path` names it in messages,
  // `file` says where what is absent should stand.
  ConfigSection(const ConfigNode* node, std::string path, std::string file = "configuration");
  ConfigSection(const ConfigSection&) = delete;
  ConfigSection& operator=(const ConfigSection&) = delete;

  // Each Read replaces `*value` by what the file says, and leaves it, the default, where the file says
  // nothing or something wrong. A key is read once.
  void Read(std::string_view key, int64_t* value, IntegerRange range = {}, KeyHelp help = {});
  void Read(std::string_view key, int* value, IntegerRange range = {}, KeyHelp help = {});
  void Read(std::string_view key, double* value, RealRange range = {}, KeyHelp help = {});
  void Read(std::string_view key, bool* value, KeyHelp help = {});
  void Read(std::string_view key, std::string* value, KeyHelp help = {});
  void Read(std::string_view key, std::filesystem::path* value, KeyHelp help = {});
  void Read(std::string_view key, std::vector<std::string>* values, KeyHelp help = {});
  void Read(std::string_view key, std::vector<int64_t>* values, IntegerRange range = {}, KeyHelp help = {});
  void Read(std::string_view key, std::vector<double>* values, RealRange range = {}, KeyHelp help = {});

  // As Read of a string that must be one of `choices`.
  void ReadChoice(std::string_view key, std::string* value, const std::vector<std::string>& choices,
                  KeyHelp help = {});

  // The section under `key`, empty if absent. Its errors come with this one's Finish().
  ConfigSection& Section(std::string_view key, std::string_view meaning = {});

  // Leaves keys that are not read here to another process, which owns the section; else they are errors.
  void IgnoreOtherKeys() { ignores_other_keys_ = true; }

  // Makes the absence of `key` an error.
  void Require(std::string_view key);

  // Makes it an error that the path under `key`, as it was read, names no readable file, or no folder that
  // holds the files `names`. An empty path asks for nothing. `way_out` ends the message.
  void RequireFile(std::string_view key, const std::filesystem::path& path, std::string_view way_out = {});
  void RequireFolder(std::string_view key, const std::filesystem::path& path,
                     const std::vector<std::string>& names, std::string_view way_out = {});

  // Makes it an error that the folder `path` neither can be made nor, where it is there, written to.
  void RequireWritable(std::string_view key, const std::filesystem::path& path);

  // Adds an error of the caller's own about `key`, for what ranges cannot say; an empty key is the section.
  void AddError(std::string_view key, std::string_view message);

  // The keys that are written in the file, in their order; for sections whose keys are names the user chose.
  std::vector<std::string> WrittenKeys() const;

  // All errors of this section and those below, unknown keys among them, a line each; OK if there are none.
  absl::Status Finish() const;

  // The values after defaults, in the order of reading. Unread keys are not part of it.
  ConfigNode Resolved() const;

  // See ConfigFile::Reference().
  std::string Reference() const;

 private:
  struct Child {
    std::string key;
    std::string unit;
    std::string meaning;
    std::string wanted;                      // of a value: "an integer of at least 1"
    ConfigNode resolved;                     // of a value
    std::unique_ptr<ConfigSection> section;  // of a section
  };

  template <typename T, typename Convert>
  void ReadScalar(std::string_view key, T* value, std::string_view wanted, KeyHelp help, Convert convert);
  template <typename T, typename Convert>
  void ReadList(std::string_view key, std::vector<T>* values, std::string_view wanted, KeyHelp help,
                Convert convert);
  const ConfigNode* Take(std::string_view key, KeyHelp help);
  void Resolve(std::string_view key, ConfigNode resolved);
  void AddErrorAt(const std::string& place, std::string_view key, std::string_view message);
  void CollectErrors(std::vector<std::string>* errors) const;
  std::string PathOf(std::string_view key) const;

  const ConfigNode* const node_;
  const std::string path_;
  const std::string file_;
  std::vector<Child> children_;
  std::vector<std::string> errors_;
  bool ignores_other_keys_ = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CONFIG_CONFIG_SECTION_H_
