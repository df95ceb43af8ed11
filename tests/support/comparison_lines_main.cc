// comparison_lines: what the referee says of outputs, for tests in Python that hold the oracle's tolerances against
// it. Built with the tests and never installed.
//
// Reads a JSON object a line: "code" and "bits" of DLPack, "expected", "margins" (empty where there are none) and
// "actual" as hexadecimal bytes, and "tolerance", the fields that the oracle sends. Writes a line for each, with fields
// of the Comparison. Ends with 1 at a line that it cannot read.
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"
#include "reward_service/referee/task/draw_request.h"

namespace warpsmith {
namespace {

using nlohmann::json;

std::string Bytes(const json& line, const char* name) {
  return absl::HexStringToBytes(line.at(name).get<std::string>());
}

json Answer(const json& line) {
  const std::string expected = Bytes(line, "expected"), actual = Bytes(line, "actual");
  const std::string margins = Bytes(line, "margins");
  const auto tolerances = ReadTolerances({{"tolerances", {line.at("tolerance")}}}, 1);
  TensorSpec spec;
  spec.code = line.at("code");
  spec.bits = line.at("bits");
  spec.num_bytes = static_cast<int64_t>(expected.size());
  spec.num_elements = spec.num_bytes * 8 / spec.bits;
  spec.shape = {spec.num_elements};
  if (actual.size() != expected.size() || !tolerances.ok()) return {{"error", "malformed"}};
  std::vector<uint32_t> words(margins.size() / sizeof(uint32_t));
  std::memcpy(words.data(), margins.data(), margins.size());
  const Comparison result = Compare(spec, tolerances->front(),
                                    {expected.data(), words.empty() ? nullptr : words.data()}, actual.data());
  return {{"num_wrong", result.num_wrong},
          {"first_outlier", result.first_outlier},
          {"first_difference", result.first_difference}};
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
