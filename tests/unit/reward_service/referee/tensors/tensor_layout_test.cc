#include "reward_service/referee/tensors/tensor_layout.h"

#include "reward_service/jail/messages.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

nlohmann::json Tensor(std::vector<int64_t> shape, int code = 2, int bits = 32) {
  return {{"code", code}, {"bits", bits}, {"shape", shape}};
}

nlohmann::json Task(nlohmann::json input, nlohmann::json output) {
  return {{"inputs", {input}}, {"parameters", nlohmann::json::array()}, {"outputs", {output}}};
}

TEST_CASE("tensors are aligned and outputs have guards around them") {
  nlohmann::json described = Task(Tensor({3, 5}), Tensor({7}));
  described["inputs"].push_back(Tensor({}, 2, 64));
  described["outputs"].push_back(Tensor({2}, 0, 64));
  const auto layout = MakeLayout(described, 1 << 20);
  REQUIRE(layout.ok());
  CHECK(layout->inputs[0].offset == 0);
  CHECK(layout->inputs[1].offset == 64);
  CHECK(layout->inputs[1].num_elements == 1);
  CHECK(layout->outputs[0].offset == 4096);
  CHECK(layout->outputs[1].offset >= layout->outputs[0].offset + 28 + 4096);
  CHECK(layout->outputs[1].offset % 64 == 0);
  CHECK(layout->output_buffer_bytes >= layout->outputs[1].offset + 16 + 4096);
  CHECK(layout->outputs[0].margins_offset == layout->output_buffer_bytes);
  CHECK(layout->outputs[1].margins_offset >= layout->outputs[0].margins_offset + 7 * 4);
  CHECK(layout->exact_output_bytes() >= layout->outputs[1].margins_offset + 2 * 4);
  CHECK(layout->tensor_bytes() == 60 + 8 + 28 + 16);
  CHECK(layout->reference_us == 0);
  CHECK(layout->construction == absl::ZeroDuration());
  described["call_us"] = 70;
  described["construction_us"] = 2000;
  CHECK(MakeLayout(described, 1 << 20)->reference_us == 70);
  CHECK(MakeLayout(described, 1 << 20)->construction == absl::Milliseconds(2));
}

TEST_CASE("descriptions out of range are refused") {
  const nlohmann::json good = Tensor({2});
  CHECK(MakeLayout(Task(good, good), 1 << 20).ok());
  CHECK_FALSE(MakeLayout(Task(Tensor({2}, 5, 64), good), 1 << 20).ok());
  CHECK_FALSE(MakeLayout(Task(Tensor({-1}), good), 1 << 20).ok());
  CHECK_FALSE(MakeLayout(Task(Tensor({1 << 30}), good), 1 << 20).ok());
  CHECK_FALSE(MakeLayout(Task(Tensor({1 << 19, 1 << 19, 1 << 19, 1 << 19}), good), 1 << 20).ok());
  CHECK_FALSE(MakeLayout(Task(good, Tensor({1 << 18})), 1 << 20).ok());
  CHECK_FALSE(MakeLayout({{"inputs", 3}}, 1 << 20).ok());
  CHECK_FALSE(MakeLayout(Task(nlohmann::json(3), good), 1 << 20).ok());
  CHECK_FALSE(MakeLayout(Task({{"code", 2}, {"bits", 32}}, good), 1 << 20).ok());
}

TEST_CASE("a description that no jail can be told is refused") {
  nlohmann::json described = Task(Tensor({2}), Tensor({2}));
  nlohmann::json parameter = Tensor({64, 64, 3, 3});
  parameter["name"] = std::string(60, 'n');
  described["parameters"] = nlohmann::json(oracle::Loaded::parameters.num_max, parameter);
  const nlohmann::json init_inputs = nlohmann::json(1000, 12345);
  described["init_inputs"] = init_inputs;
  CHECK(MakeLayout(described, 1 << 30).ok());
  described["init_inputs"] = nlohmann::json(30'000, 12345);
  const std::string text = MakeLayout(described, 1 << 30).status().ToString();
  INFO(text);
  CHECK(text.find("of which 192512 are allowed") != std::string::npos);
  described["parameters"].push_back(parameter);
  CHECK(MakeLayout(described, 1 << 30).status().message() == "the task has more than 1024 parameters");
}

TEST_CASE("names of dtypes, shapes and indices") {
  CHECK(DtypeName(2, 32) == "float32");
  CHECK(DtypeName(4, 16) == "bfloat16");
  CHECK(DtypeName(255, 8) == "dtype(255, 8)");
  CHECK(ShapeName({}) == "[]");
  CHECK(IndexName({2, 3, 4}, 23) == "[1, 2, 3]");
}

}  // namespace
}  // namespace warpsmith
