#include "reward_service/measure/judgement_json.h"

#include <cctype>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {

// What nlohmann's macros expect to find beside the types.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CorrectnessNumbers, num_draws, num_elements, num_wrong, max_absolute_error,
                                   max_relative_error, absolute_tolerance, relative_tolerance,
                                   first_difference)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SideTiming, median_us, mean_us, standard_deviation_us, num_calls,
                                   num_instances)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimingNumbers, reference, candidate, speedup, speedup_low, speedup_high,
                                   distinguishable, empty_call_us, quality, parameters_fixed,
                                   libraries_withheld)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProfileNumbers, num_samples, own_code_share, torch_share, blas_share,
                                   libc_share, kernel_share, num_threads, vector_bits, gigabytes_per_second,
                                   gigabytes_per_second_ceiling, bound)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PhaseSeconds, lane_wait, oracle, verify, time, profile)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RefereeFacts, lane_cores, realtime, profile, torch_version,
                                   torch_cpu_capability, empty_call_us, sample_us,
                                   gigabytes_per_second_ceiling, nearest_cache_gigabytes_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JudgeLimits, cpu_seconds_max, call_seconds_max, lane_seconds_max)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimingEffort, num_instances_min, num_instances_max, num_rounds_max,
                                   relative_width_max, num_deciding_samples)

namespace {

constexpr size_t kExtensionsMax = 16;
constexpr size_t kTextsMax = 64;
constexpr size_t kNameBytesMax = 64;

absl::StatusOr<std::vector<std::string>> Texts(const nlohmann::json& fields, const char* name) {
  std::vector<std::string> texts;
  const auto found = fields.find(name);
  if (found == fields.end() || !found->is_array() || found->size() > kTextsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("load_inline: ", name, " is no list of at most ", kTextsMax));
  }
  for (const nlohmann::json& text : *found) {
    if (!text.is_string())
      return absl::InvalidArgumentError(absl::StrCat("load_inline: ", name, " holds no text"));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

bool IsIdentifier(const std::string& name) {
  if (name.empty() || name.size() > kNameBytesMax || std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

absl::StatusOr<ExtensionRecord> ReadExtension(const nlohmann::json& fields) {
  ExtensionRecord record;
  if (!fields.is_object() || !fields.contains("name") || !fields["name"].is_string()) {
    return absl::InvalidArgumentError("load_inline: no name");
  }
  record.name = fields["name"].get<std::string>();
  if (!IsIdentifier(record.name)) return absl::InvalidArgumentError("load_inline: the name is no identifier");
  ASSIGN_OR_RETURN(record.cpp_sources, Texts(fields, "cpp_sources"));
  ASSIGN_OR_RETURN(record.cuda_sources, Texts(fields, "cuda_sources"));
  ASSIGN_OR_RETURN(record.functions, Texts(fields, "functions"));
  ASSIGN_OR_RETURN(record.extra_cflags, Texts(fields, "extra_cflags"));
  ASSIGN_OR_RETURN(record.extra_cuda_cflags, Texts(fields, "extra_cuda_cflags"));
  ASSIGN_OR_RETURN(record.extra_ldflags, Texts(fields, "extra_ldflags"));
  return record;
}

}  // namespace

nlohmann::json ToJson(const Judgement& j) {
  nlohmann::json fields = {{"outcome", static_cast<int>(j.outcome)},
                           {"reason", j.reason},
                           {"hack_family", j.hack_family},
                           {"correctness", j.correctness},
                           {"seconds", j.seconds},
                           {"input_mutated", j.input_mutated},
                           {"guard_touched", j.guard_touched},
                           {"output_unwritten", j.output_unwritten},
                           {"out_of_bounds", j.out_of_bounds},
                           {"wrong_at_scale_only", j.wrong_at_scale_only},
                           {"output_tail", j.output_tail},
                           {"bytes_per_call", j.bytes_per_call}};
  if (j.timing) fields["timing"] = *j.timing;
  if (j.profile) fields["profile"] = *j.profile;
  return fields;
}

Judgement JudgementFromJson(const nlohmann::json& fields) {
  Judgement j;
  j.outcome = static_cast<Outcome>(fields.at("outcome").get<int>());
  fields.at("reason").get_to(j.reason);
  fields.at("hack_family").get_to(j.hack_family);
  fields.at("correctness").get_to(j.correctness);
  fields.at("seconds").get_to(j.seconds);
  fields.at("input_mutated").get_to(j.input_mutated);
  fields.at("guard_touched").get_to(j.guard_touched);
  fields.at("output_unwritten").get_to(j.output_unwritten);
  fields.at("out_of_bounds").get_to(j.out_of_bounds);
  fields.at("wrong_at_scale_only").get_to(j.wrong_at_scale_only);
  fields.at("output_tail").get_to(j.output_tail);
  fields.at("bytes_per_call").get_to(j.bytes_per_call);
  if (fields.contains("timing")) j.timing = fields["timing"].get<TimingNumbers>();
  if (fields.contains("profile")) j.profile = fields["profile"].get<ProfileNumbers>();
  return j;
}

nlohmann::json ToJson(const RefereeFacts& facts) { return facts; }
RefereeFacts FactsFromJson(const nlohmann::json& fields) { return fields.get<RefereeFacts>(); }
nlohmann::json ToJson(const JudgeLimits& limits) { return limits; }
JudgeLimits LimitsFromJson(const nlohmann::json& fields) { return fields.get<JudgeLimits>(); }
nlohmann::json ToJson(const TimingEffort& timing) { return timing; }
TimingEffort TimingFromJson(const nlohmann::json& fields) { return fields.get<TimingEffort>(); }

absl::StatusOr<std::vector<ExtensionRecord>> ExtensionsFromJson(const nlohmann::json& list) {
  if (!list.is_array() || list.size() > kExtensionsMax) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kExtensionsMax, " calls of load_inline"));
  }
  std::vector<ExtensionRecord> records;
  for (const nlohmann::json& fields : list) {
    ASSIGN_OR_RETURN(ExtensionRecord record, ReadExtension(fields));
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace warpsmith
