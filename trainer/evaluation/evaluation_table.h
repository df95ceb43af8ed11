// The figures of evaluations as plain text, for whoever watches a run end.
#ifndef WARPSMITH_TRAINER_EVALUATION_EVALUATION_TABLE_H_
#define WARPSMITH_TRAINER_EVALUATION_EVALUATION_TABLE_H_

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace warpsmith {

struct EvaluationColumn {
  std::string name;                    // "before"
  const nlohmann::ordered_json* json;  // of EvaluationToJson; not null
};

// A block of lines for both skills together, for each skill, for greedy decoding and for the unseen operators,
// where a column has answers of the kind. A line has one figure of every column with its 95 % interval; "-"
// stands for a figure that does not exist. At most 80 characters a line with two columns; ends with a newline.
std::string EvaluationTable(const std::vector<EvaluationColumn>& columns);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_EVALUATION_EVALUATION_TABLE_H_
