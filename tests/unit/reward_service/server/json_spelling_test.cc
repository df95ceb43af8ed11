// Through ParseJson(), where spellings meet protobuf's own parser.
#include "reward_service/server/json_spelling.h"

#include <string>

#include "reward_service/server/json_text.h"
#include "tests/support/catch.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {
namespace {

TEST_CASE("enum values may be spelt as people write them") {
  for (const std::string language : {"cuda", "CUDA", "Cuda", "CANDIDATE_LANGUAGE_CUDA",
                                     "candidate_language_cuda", "candidate-language-cuda"}) {
    INFO(language);
    v1::GradeRequest request;
    const absl::Status status =
        ParseJson(R"({"task": {"device": "cuda", "skill": "optimise"}, "priority": "high", "candidate": {)"
                  R"("source": "int \"a\";", "language": ")" +
                      language + "\"}}",
                  &request);
    INFO(status);
    REQUIRE(status.ok());
    CHECK(request.candidate().language() == v1::CANDIDATE_LANGUAGE_CUDA);
    CHECK(request.candidate().source() == "int \"a\";");
    CHECK(request.task().device() == v1::DEVICE_CUDA);
    CHECK(request.task().skill() == v1::SKILL_OPTIMISE);
    CHECK(request.priority() == v1::PRIORITY_HIGH);
  }
  v1::GradeRequest request;
  CHECK(ParseJson(R"({"candidate": {"language": "kernelbench-python"}})", &request).ok());
  CHECK(request.candidate().language() == v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  CHECK(ParseJson(R"({"priority": "high", "task": {"device": "2"}})", &request).ok());  // protobuf's numbers
  CHECK(static_cast<int>(request.task().device()) == 2);
}

TEST_CASE("a name that is none is refused with those there are") {
  const auto refusal = [](const std::string& text) {
    v1::GradeRequest request;
    const absl::Status status = ParseJson(text, &request);
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK_THAT(refusal(R"({"candidate": {"language": "gpu"}})"),
             Catch::EndsWith("candidate.language is \"gpu\"; use cpp, kernelbench_python or cuda"));
  CHECK_THAT(refusal(R"({"task": {"device": ""}})"), Catch::EndsWith("task.device is \"\"; use cpu or cuda"));
  CHECK_THAT(refusal(R"({"task": {"referenceSorce": "x"}})"),
             Catch::EndsWith("task.referenceSorce is not a known key; did you mean \"referenceSource\"?"));
  CHECK_THAT(refusal(R"({"candidate": {"xyz": 1}})"),
             Catch::EndsWith("candidate.xyz is not a known key; known are language, answer, source"));
  // The parser's word for what is wrong beside a spelling that is right.
  CHECK_THAT(refusal(R"({"candidate": {"language": "cuda", "source": 3}})"), Catch::Contains("source"));
}

}  // namespace
}  // namespace warpsmith
