#include "proto/language_names.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a language's name is that of its value, in small letters") {
  CHECK(LanguageName(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON) == "kernelbench_python");
  CHECK(LanguageNames() == std::vector<std::string>{"cpp", "kernelbench_python", "cuda"});
  CHECK(AllLanguageNames() == "cpp, kernelbench_python or cuda");
}

TEST_CASE("a name gives its language, and any other text none") {
  for (const std::string& name : LanguageNames()) CHECK(LanguageName(LanguageOfName(name)) == name);
  for (const char* text : {"", "CPP", "unspecified", "cpp ", "cobol"}) {
    INFO(text);
    CHECK(LanguageOfName(text) == v1::CANDIDATE_LANGUAGE_UNSPECIFIED);
  }
}

TEST_CASE("no language and one that is not known have no name") {
  CHECK(LanguageName(v1::CANDIDATE_LANGUAGE_UNSPECIFIED).empty());
  CHECK(LanguageName(static_cast<v1::CandidateLanguage>(99)).empty());
}

}  // namespace warpsmith
