#include "core/model/model_fields.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/model/rope_scaling_json.h"

namespace warpsmith {

// nlohmann writes the shortest text that is read as the same number.
ModelFields FieldsOf(const ModelConfig& config) {
  ModelFields fields = {{"architectures", ArchitectureOf(config)},
                        {"rope_scaling", RopeScalingJson(config.rope_scaling).dump()}};
  VisitFields(config,
              [&](const char* name, const auto* value) { fields[name] = nlohmann::json(*value).dump(); });
  fields.erase("max_position_embeddings");
  return fields;
}

std::string DifferingFields(const ModelFields& there, const ModelFields& here) {
  constexpr size_t kShownBytesMax = 300;
  std::vector<std::string> differences;
  for (const auto& [name, value] : here) {
    const auto found = there.find(name);
    if (found == there.end() || found->second == value) continue;
    differences.push_back(absl::StrCat(name, " is ", Escape(found->second, kShownBytesMax), ", not ",
                                       Escape(value, kShownBytesMax)));
  }
  return absl::StrJoin(differences, "; ");
}

}  // namespace warpsmith
