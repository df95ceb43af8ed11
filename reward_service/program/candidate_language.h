// What the service knows of each language of candidates: one row a language, and no other place asks which it is.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_CANDIDATE_LANGUAGE_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_CANDIDATE_LANGUAGE_H_

#include <span>
#include <string>
#include <string_view>

#include "reward_service/program/neutral_text.h"
#include "reward_service/program/source_facts.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

struct CandidateLanguage {
  v1::CandidateLanguage value;
  // Whether a program is compiled whole, into a library with `run`, before a lane is asked for. Else it is a Python
  // program with ModelNew, and what it wants compiled is known when it first runs.
  bool is_native;
  // What its programs may be graded on; the first that a service has, where a task does not say.
  std::span<const v1::Device> devices;
  // A program's text without what means nothing to its compiler.
  std::string (*normalise)(std::string_view source);
  // The same without anything that its writer says.
  std::string (*neutralise)(std::string_view source, NeutralNames* names);
  // Not `valid` for languages whose structure is not read.
  SourceFacts (*read_facts)(std::string_view source);
  // For a reader who does not know the service.
  std::string_view description;
};

// All of them, in the order of the values.
std::span<const CandidateLanguage> CandidateLanguages();

// Null for a value that is none of the list, CANDIDATE_LANGUAGE_UNSPECIFIED among them.
const CandidateLanguage* FindLanguage(v1::CandidateLanguage value);

// Of a request that has passed the door: its language is one of the list.
const CandidateLanguage& LanguageOf(v1::CandidateLanguage value);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_CANDIDATE_LANGUAGE_H_
