// feedback_lines: what the reward service says of grades, for tests and benchmarks in Python that hold it
// against their measurements. Built with the tests and never installed.
//
// Reads a JSON object a line: "grade" in protobuf's JSON, and optionally "num_lane_cores" and "facts", the fields
// of SourceFacts; without them, facts are read from the grade's source. Writes a line for each: "finding",
// "evidence", "advice" in words, and the "facts". Ends with 1 at a line that it cannot read.
#include <google/protobuf/util/json_util.h>

#include <iostream>
#include <string>
#include <utility>

#include "nlohmann/json.hpp"
#include "proto/advice_words.h"
#include "reward_service/scoring/feedback.h"

namespace warpsmith {
namespace {

using nlohmann::ordered_json;

SourceFacts FactsFromJson(const ordered_json& json) {
  return {.valid = json.at("valid"),
          .num_passes = json.at("num_passes"),
          .loop_depth_max = json.at("loop_depth_max"),
          .num_allocations = json.at("num_allocations"),
          .strided = json.at("strided"),
          .calls_libm = json.at("calls_libm")};
}

ordered_json FactsToJson(const SourceFacts& facts) {
  return {{"valid", facts.valid},
          {"num_passes", facts.num_passes},
          {"loop_depth_max", facts.loop_depth_max},
          {"num_allocations", facts.num_allocations},
          {"strided", facts.strided},
          {"calls_libm", facts.calls_libm}};
}

// As merge computes it, of the grade alone.
ordered_json FeedbackOf(const ordered_json& line, v1::Grade grade) {
  const bool given = line.contains("facts");
  const SourceFacts facts = given ? FactsFromJson(line.at("facts")) : ReadSourceFacts(grade.source());
  v1::AdviceFacts advice_facts;
  advice_facts.set_num_lane_cores(line.value("num_lane_cores", 1));
  if (grade.verdict() == v1::VERDICT_CORRECT && !grade.has_credit())
    *grade.mutable_credit() = ComputeCredit(grade.timing(), {});
  const v1::Feedback feedback = ComputeFeedback(grade, facts, advice_facts);
  return {{"finding", feedback.finding()},
          {"evidence", feedback.evidence()},
          {"advice", std::string(AdviceWords(feedback.advice()))},
          {"facts", FactsToJson(facts)}};
}

int Run() {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  for (std::string text; std::getline(std::cin, text);) {
    try {
      const ordered_json line = ordered_json::parse(text);
      v1::Grade grade;
      const auto status =
          google::protobuf::util::JsonStringToMessage(line.at("grade").dump(), &grade, options);
      if (!status.ok()) {
        std::cerr << "no Grade: " << status.ToString() << "\n";
        return 1;
      }
      std::cout << FeedbackOf(line, std::move(grade)).dump() << "\n";
    } catch (const nlohmann::json::exception& error) {
      std::cerr << "a line is malformed: " << error.what() << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main() { return warpsmith::Run(); }
