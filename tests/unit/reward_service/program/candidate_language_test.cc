#include "reward_service/program/candidate_language.h"

#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("every language of the contract has one row") {
  for (int value = v1::CANDIDATE_LANGUAGE_UNSPECIFIED + 1; value <= v1::CandidateLanguage_MAX; ++value) {
    const auto language = static_cast<v1::CandidateLanguage>(value);
    INFO(v1::CandidateLanguage_Name(language));
    REQUIRE(FindLanguage(language) != nullptr);
    CHECK(LanguageOf(language).value == language);
  }
  CHECK(CandidateLanguages().size() == v1::CandidateLanguage_MAX);
  CHECK(FindLanguage(v1::CANDIDATE_LANGUAGE_UNSPECIFIED) == nullptr);
  CHECK(FindLanguage(static_cast<v1::CandidateLanguage>(99)) == nullptr);
}

TEST_CASE("C++ is graded on a CPU, CUDA on a GPU, Python on either and rather on a GPU") {
  const auto devices = [](v1::CandidateLanguage language) {
    const std::span<const v1::Device> all = LanguageOf(language).devices;
    return std::vector<v1::Device>(all.begin(), all.end());
  };
  CHECK(devices(v1::CANDIDATE_LANGUAGE_CPP) == std::vector<v1::Device>{v1::DEVICE_CPU});
  CHECK(devices(v1::CANDIDATE_LANGUAGE_CUDA) == std::vector<v1::Device>{v1::DEVICE_CUDA});
  CHECK(devices(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON) ==
        std::vector<v1::Device>{v1::DEVICE_CUDA, v1::DEVICE_CPU});
}

TEST_CASE("a program is read as its language asks") {
  const CandidateLanguage& cpp = LanguageOf(v1::CANDIDATE_LANGUAGE_CPP);
  const CandidateLanguage& python = LanguageOf(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  const CandidateLanguage& cuda = LanguageOf(v1::CANDIDATE_LANGUAGE_CUDA);
  CHECK(cpp.normalise("int a;  // a\n") == "int a;");
  CHECK(cuda.normalise("int a;  // a\n") == "int a;");
  CHECK(python.normalise("a = 1  # one") == "a = 1");
  CHECK(python.normalise("a // b") == "a // b");
  NeutralNames names({});
  CHECK(cpp.neutralise("int a; // a", &names).find('/') == std::string::npos);
  CHECK(cpp.is_native);
  CHECK(cuda.is_native);
  CHECK_FALSE(python.is_native);
}

TEST_CASE("structure is told of native programs alone") {
  constexpr char kProgram[] = "extern \"C\" int run() { for (;;) {} }";
  const CandidateLanguage& cpp = LanguageOf(v1::CANDIDATE_LANGUAGE_CPP);
  const CandidateLanguage& cuda = LanguageOf(v1::CANDIDATE_LANGUAGE_CUDA);
  const CandidateLanguage& python = LanguageOf(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  CHECK(cpp.read_facts(kProgram).valid);
  CHECK(cuda.read_facts(kProgram).valid);
  CHECK_FALSE(python.read_facts(kProgram).valid);
}

}  // namespace
}  // namespace warpsmith
