// Tells as text what decides the logits of a model beside its weights, for two processes to compare.
#ifndef WARPSMITH_CORE_MODEL_MODEL_FIELDS_H_
#define WARPSMITH_CORE_MODEL_MODEL_FIELDS_H_

#include <map>
#include <string>

#include "core/model/model_config.h"

namespace warpsmith {

// Value by the name of a config.json's field. Equal texts are equal values.
using ModelFields = std::map<std::string, std::string>;

// Returns all fields but max_position_embeddings, which changes no logit.
ModelFields FieldsOf(const ModelConfig& config);

// Returns the fields that differ, "rope_theta is 5000, not 10000; ..." of `there` and `here`; empty: none does. A field
// that only one side has is not compared: the other side's program is older.
std::string DifferingFields(const ModelFields& there, const ModelFields& here);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_MODEL_FIELDS_H_
