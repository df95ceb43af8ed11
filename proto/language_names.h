// The candidates' languages by the names that files, terminals and configurations use.
#ifndef WARPSMITH_PROTO_LANGUAGE_NAMES_H_
#define WARPSMITH_PROTO_LANGUAGE_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// "cpp" of CANDIDATE_LANGUAGE_CPP. Empty for CANDIDATE_LANGUAGE_UNSPECIFIED and for a value that is none of the list.
std::string LanguageName(v1::CandidateLanguage language);

// The language of exactly this name; CANDIDATE_LANGUAGE_UNSPECIFIED for any other text.
v1::CandidateLanguage LanguageOfName(std::string_view name);

// All names, in the order of the values.
std::vector<std::string> LanguageNames();

// "cpp, kernelbench_python or cuda": for messages.
std::string AllLanguageNames();

}  // namespace warpsmith

#endif  // WARPSMITH_PROTO_LANGUAGE_NAMES_H_
