#include "reward_service/grading/service_abilities.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "proto/device_names.h"
#include "proto/language_names.h"
#include "reward_service/program/candidate_language.h"

namespace warpsmith {
namespace {

bool MayRunOn(const CandidateLanguage& language, v1::Device device) {
  return std::find(language.devices.begin(), language.devices.end(), device) != language.devices.end();
}

std::string UpperName(v1::CandidateLanguage language) {
  return absl::AsciiStrToUpper(LanguageName(language));
}

std::string UpperName(v1::Device device) { return absl::AsciiStrToUpper(DeviceName(device)); }

// `asked`: what asks for the device, "task.device is CUDA".
absl::Status LackError(const std::string& asked, v1::Device device, const ServiceAbilities& abilities) {
  const bool is_gpu = device == v1::DEVICE_CUDA;
  const std::string why =
      is_gpu && !abilities.why_no_gpu.empty() ? absl::StrCat(" (", abilities.why_no_gpu, ")") : "";
  return absl::FailedPreconditionError(
      absl::StrCat(asked, ", which needs a ", is_gpu ? "GPU" : UpperName(device), "; this service has none",
                   why, " and grades ", GradedText(abilities)));
}

absl::StatusOr<const CandidateLanguage*> KnownLanguage(v1::CandidateLanguage value,
                                                       const ServiceAbilities& abilities) {
  if (const CandidateLanguage* const language = FindLanguage(value); language != nullptr) return language;
  std::vector<std::string> names;
  for (const v1::CandidateLanguage graded : GradedLanguages(abilities)) names.push_back(UpperName(graded));
  return absl::InvalidArgumentError(absl::StrCat("candidate.language ", static_cast<int>(value),
                                                 " is not known: ", absl::StrJoin(names, " or ")));
}

absl::Status CheckPair(const CandidateLanguage& language, v1::Device wanted) {
  if (!v1::Device_IsValid(wanted)) {
    return absl::InvalidArgumentError(
        absl::StrCat("task.device ", static_cast<int>(wanted), " is not known: ", AllDeviceNames()));
  }
  if (MayRunOn(language, wanted)) return absl::OkStatus();
  std::vector<std::string> names;
  for (const v1::Device device : language.devices) names.push_back(DeviceName(device));
  return absl::InvalidArgumentError(absl::StrCat("task.device is ", UpperName(wanted),
                                                 ", and candidate.language is ", UpperName(language.value),
                                                 ", which runs on ", absl::StrJoin(names, " or "), " alone"));
}

}  // namespace

std::string GradedText(const ServiceAbilities& abilities) {
  std::vector<std::string> parts;
  for (const auto& [device, environment] : abilities.devices) {
    std::vector<std::string> names;
    for (const CandidateLanguage& language : CandidateLanguages()) {
      if (MayRunOn(language, device)) names.push_back(LanguageName(language.value));
    }
    parts.push_back(absl::StrCat(absl::StrJoin(names, " and "), " on ", DeviceName(device)));
  }
  return absl::StrJoin(parts, ", ");
}

std::vector<v1::CandidateLanguage> GradedLanguages(const ServiceAbilities& abilities) {
  std::vector<v1::CandidateLanguage> graded;
  for (const CandidateLanguage& language : CandidateLanguages()) {
    const auto has = [&](v1::Device device) { return abilities.devices.count(device) > 0; };
    if (std::any_of(language.devices.begin(), language.devices.end(), has)) graded.push_back(language.value);
  }
  return graded;
}

absl::StatusOr<v1::Device> ChooseDevice(v1::CandidateLanguage value, v1::Device wanted,
                                        const ServiceAbilities& abilities) {
  ASSIGN_OR_RETURN(const CandidateLanguage* const language, KnownLanguage(value, abilities));
  if (wanted != v1::DEVICE_UNSPECIFIED) {
    RETURN_IF_ERROR(CheckPair(*language, wanted));
    if (abilities.devices.count(wanted) > 0) return wanted;
    return LackError(absl::StrCat("task.device is ", UpperName(wanted)), wanted, abilities);
  }
  for (const v1::Device device : language->devices) {
    if (abilities.devices.count(device) > 0) return device;
  }
  return LackError(absl::StrCat("candidate.language is ", UpperName(value)), language->devices.front(),
                   abilities);
}

}  // namespace warpsmith
