// A run's configuration: one YAML file of sections, with overrides from the command line.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<ConfigFile> file, ConfigFile::Load(path, known_sections, assignments));
//   ReadTrainerOptions(file->Section("trainer"), &options);
//   RETURN_IF_ERROR(file->Finish());
#ifndef WARPSMITH_CORE_CONFIG_CONFIG_FILE_H_
#define WARPSMITH_CORE_CONFIG_CONFIG_FILE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/config/config_node.h"
#include "core/config/config_section.h"

namespace warpsmith {

// Each process reads its own sections and sees to it that the others are at least known by name. Not
// thread-safe.
class ConfigFile {
 public:
  // Reads the file at `path`, of at most 1 MiB; an empty path is a file that says nothing. Every top-level
  // key must be one of `known_sections` and hold a section. `assignments` are put on top, see Override.
  // INVALID_ARGUMENT with the place of each fault; the errors of ReadFile.
  static absl::StatusOr<std::unique_ptr<ConfigFile>> Load(const std::filesystem::path& path,
                                                          const std::vector<std::string>& known_sections,
                                                          const std::vector<std::string>& assignments = {});

  // As Load, from `text`; `name` stands for the file in messages.
  static absl::StatusOr<std::unique_ptr<ConfigFile>> Parse(std::string_view text, std::string_view name,
                                                           const std::vector<std::string>& known_sections);

  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  // Sets one value as if it stood in the file: "trainer.learning_rate=1e-3", the value being YAML. Its key is
  // checked when its section is read. To be called before Section(). INVALID_ARGUMENT: not of this form, an
  // unknown section.
  absl::Status Override(std::string_view assignment);

  // The section `name`, one of the known; empty if the file lacks it. Lives as long as the file.
  ConfigSection& Section(std::string_view name);

  // All errors of the sections that were read, a line each, in the order of the known sections.
  absl::Status Finish() const;

  // The whole configuration as YAML: sections that were read with their values after defaults, others as
  // written. Loads back to the same values.
  std::string ResolvedYaml() const { return ResolvedYaml(known_sections_); }

  // The same of these sections only.
  std::string ResolvedYaml(const std::vector<std::string>& sections) const;

  // Returns the same by key: "trainer.num_steps" to "200". A list is one value.
  std::map<std::string, std::string> ResolvedValues(const std::vector<std::string>& sections) const;

  // What there is to know about every key of these sections, in the order of reading, as tab-separated lines:
  //   trainer.num_steps <TAB> 0 <TAB> an integer of at least 0 <TAB> steps <TAB> After which ...
  // Key, default, what the value may be, unit, meaning. Of a section the default is empty and the value is
  // "a section". Only a file that says nothing has the defaults.
  std::string Reference(const std::vector<std::string>& sections) const;

 private:
  ConfigFile(ConfigNode root, std::string name, std::vector<std::string> known_sections);

  ConfigNode Resolved(const std::vector<std::string>& sections) const;
  absl::Status SetValue(const std::vector<std::string>& keys, ConfigNode value);

  ConfigNode root_;
  const std::string name_;
  const std::vector<std::string> known_sections_;
  std::map<std::string, std::unique_ptr<ConfigSection>, std::less<>> sections_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CONFIG_CONFIG_FILE_H_
