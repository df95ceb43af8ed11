// comparison_lines: what the referee says of outputs, for tests in Python that hold the oracle's tolerances against
// it. Built with the tests and never installed.
//
// Reads a JSON object a line: "code" and "bits" of DLPack, "expected" and "actual" as hexadecimal bytes, and
// "tolerance", the fields that the oracle sends. Writes a line for each: "num_wrong", of the comparison that
// explains, and "all_right", of the fast one. Ends with 1 at a line that it cannot read.
#include <iostream>
#include <string>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"
#include "reward_service/referee/tensors/comparison.h"

namespace warpsmith {
namespace {

using nlohmann::json;

Tolerance ToleranceFromJson(const json& fields) {
  return {.absolute = fields.at("absolute"),
          .relative = fields.at("relative"),
          .rounding = fields.at("rounding"),
          .centre = fields.at("centre"),
          .spread = fields.at("spread")};
}

json Answer(const json& line) {
  const std::string expected = absl::HexStringToBytes(line.at("expected").get<std::string>());
  const std::string actual = absl::HexStringToBytes(line.at("actual").get<std::string>());
  TensorSpec spec;
  spec.code = line.at("code");
  spec.bits = line.at("bits");
  spec.num_bytes = static_cast<int64_t>(expected.size());
  spec.num_elements = spec.num_bytes * 8 / spec.bits;
  spec.shape = {spec.num_elements};
  if (actual.size() != expected.size()) return {{"error", "two lengths"}};
  const Tolerance tolerance = ToleranceFromJson(line.at("tolerance"));
  const Comparison result = Compare(spec, tolerance, expected.data(), actual.data());
  return {{"num_wrong", result.num_wrong},
          {"all_right", AllRight(spec, tolerance, expected.data(), actual.data())}};
}

int Run() {
  for (std::string text; std::getline(std::cin, text);) {
    try {
      std::cout << Answer(json::parse(text)).dump() << "\n";
    } catch (const json::exception& error) {
      std::cerr << "a line is malformed: " << error.what() << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main() { return warpsmith::Run(); }
