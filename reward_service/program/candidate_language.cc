#include "reward_service/program/candidate_language.h"

#include "core/base/check.h"
#include "reward_service/program/neutral_source.h"
#include "reward_service/program/source_text.h"

namespace warpsmith {
namespace {

SourceFacts NoFacts(std::string_view) { return {}; }

constexpr std::string_view kNative = "a native program; its function `run` is called";

constexpr v1::Device kOnCpu[] = {v1::DEVICE_CPU};
constexpr v1::Device kOnGpu[] = {v1::DEVICE_CUDA};
constexpr v1::Device kOnBoth[] = {v1::DEVICE_CUDA, v1::DEVICE_CPU};

constexpr CandidateLanguage kLanguages[] = {
    {.value = v1::CANDIDATE_LANGUAGE_CPP,
     .is_native = true,
     .devices = kOnCpu,
     .normalise = NormaliseCpp,
     .neutralise = NeutralCpp,
     .read_facts = ReadSourceFacts,
     .description = kNative},
    {.value = v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON,
     .is_native = false,
     .devices = kOnBoth,
     .normalise = NormalisePython,
     .neutralise = NeutralPython,
     .read_facts = NoFacts,
     .description = "a Python program with ModelNew, C++ inside it as text between triple quotes"},
    {.value = v1::CANDIDATE_LANGUAGE_CUDA,
     .is_native = true,
     .devices = kOnGpu,
     .normalise = NormaliseCpp,
     .neutralise = NeutralCpp,
     .read_facts = ReadSourceFacts,
     .description = "a native CUDA program for a GPU; its function `run` is called on the host"},
};

}  // namespace

std::span<const CandidateLanguage> CandidateLanguages() { return kLanguages; }

const CandidateLanguage* FindLanguage(v1::CandidateLanguage value) {
  for (const CandidateLanguage& language : kLanguages) {
    if (language.value == value) return &language;
  }
  return nullptr;
}

const CandidateLanguage& LanguageOf(v1::CandidateLanguage value) {
  const CandidateLanguage* const language = FindLanguage(value);
  WS_CHECK(language != nullptr) << "the door checks languages: " << static_cast<int>(value);
  return *language;
}

}  // namespace warpsmith
