#include "proto/language_names.h"

#include "proto/enum_names.h"

namespace warpsmith {

std::string LanguageName(v1::CandidateLanguage language) {
  return EnumName(*v1::CandidateLanguage_descriptor(), language);
}

v1::CandidateLanguage LanguageOfName(std::string_view name) {
  return static_cast<v1::CandidateLanguage>(EnumOfName(*v1::CandidateLanguage_descriptor(), name));
}

std::vector<std::string> LanguageNames() { return EnumNames(*v1::CandidateLanguage_descriptor()); }

std::string AllLanguageNames() { return AllEnumNames(*v1::CandidateLanguage_descriptor()); }

}  // namespace warpsmith
