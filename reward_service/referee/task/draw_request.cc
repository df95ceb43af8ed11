#include "reward_service/referee/task/draw_request.h"

namespace warpsmith {
namespace {

absl::Status Malformed() { return absl::InvalidArgumentError("the oracle's answer is malformed"); }

}  // namespace

DrawRequest Tamer(DrawRequest wanted) {
  if (wanted.style == oracle::Draw::kOwn) wanted.parameter_seed = 0;
  wanted.style = oracle::Draw::kOwn;
  return wanted;
}

absl::StatusOr<std::vector<Tolerance>> ReadTolerances(const nlohmann::json& drawn, size_t num_outputs) {
  const nlohmann::json* const list = Find(drawn, oracle::Drawn::tolerances);
  if (list == nullptr || list->size() != num_outputs) return Malformed();
  std::vector<Tolerance> tolerances;
  for (const nlohmann::json& fields : *list) {
    if (!fields.is_object()) return Malformed();
    using Field = oracle::Tolerance;
    Tolerance tolerance;
    tolerance.absolute = Read(fields, Field::absolute);
    tolerance.relative = Read(fields, Field::relative);
    tolerance.spread = Read(fields, Field::spread);
    tolerance.reach = Read(fields, Field::reach);
    tolerance.outliers_max = Read(fields, Field::outliers_max);
    tolerance.outlier_error_max = Read(fields, Field::outlier_error_max);
    tolerance.bulk_max = Read(fields, Field::bulk_max);
    tolerance.has_margins = Read(fields, Field::margins);
    tolerances.push_back(tolerance);
  }
  return tolerances;
}

}  // namespace warpsmith
