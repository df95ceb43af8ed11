#include "trainer/workers/worker_identity.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/model/model_fields.h"

namespace warpsmith {
namespace {

std::set<int32_t> SetOf(const std::vector<int32_t>& ids) { return {ids.begin(), ids.end()}; }

// Empty: nothing differs.
std::string Difference(const WorkerIdentity& worker, const WorkerIdentity& trainer) {
  const std::string fields = DifferingFields(worker.model_fields, trainer.model_fields);
  if (!fields.empty()) return absl::StrCat("its model is not the trainer's: ", fields);
  if (worker.layout_sha256 != trainer.layout_sha256) return "it has another model shape";
  if (worker.prompts_sha256 != trainer.prompts_sha256) return "it has another tokenizer or other prompts";
  const std::set<int32_t> stops = SetOf(worker.stop_token_ids), own_stops = SetOf(trainer.stop_token_ids);
  if (stops.empty() || stops == own_stops) return "";
  return absl::StrCat("its answers end with the tokens ", absl::StrJoin(stops, ", "), ", the trainer's with ",
                      absl::StrJoin(own_stops, ", "), " (eos_token_id of generation_config.json)");
}

}  // namespace

absl::Status CheckAgrees(const WorkerIdentity& worker, const WorkerIdentity& trainer) {
  const std::string difference = Difference(worker, trainer);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("rollout worker ", worker.address, ": ", difference,
                                                    "; start it with the trainer's configuration"));
}

}  // namespace warpsmith
