#include "core/checkpoint/safetensors_header.h"

#include "core/base/counter_random.h"
#include "core/checkpoint/safetensors_file.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::string ErrorOf(const std::string& json, int64_t data_bytes) {
  const auto header = ParseSafetensorsHeader(json, data_bytes);
  INFO(json);
  REQUIRE(absl::IsInvalidArgument(header.status()));
  return std::string(header.status().message());
}

std::string Entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\": {\"dtype\": \"" + type + "\", \"shape\": " + shape +
         ", \"data_offsets\": " + offsets + "}";
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a header gives its tensors in the order of their bytes, and its metadata") {
  const std::string json =
      "{\"__metadata__\": {\"format\": \"pt\"}, " + Entry("b", "F32", "[2, 3]", "[4, 28]") + ", " +
      Entry("a", "BF16", "[2]", "[0, 4]") + ", " + Entry("s", "U8", "[]", "[28, 29]") + "}";
  const SafetensorsHeader header = ParseSafetensorsHeader(json, 29).value();
  REQUIRE(header.entries.size() == 3);
  CHECK(header.entries[0].info.name == "a");
  CHECK(header.entries[1].info.type == TensorType::kF32);
  CHECK(header.entries[1].info.shape == std::vector<int64_t>{2, 3});
  CHECK(header.entries[2].info.shape.empty());
  CHECK(header.metadata == TensorMetadata{{"format", "pt"}});
}

TEST_CASE("no tensors, and tensors without elements, are fine") {
  CHECK(ParseSafetensorsHeader("{}", 0).value().entries.empty());
  const std::string json =
      "{" + Entry("a", "F32", "[0, 7]", "[0, 0]") + ", " + Entry("b", "U8", "[1]", "[0, 1]") + "}";
  CHECK(ParseSafetensorsHeader(json, 1).value().entries.size() == 2);
}

TEST_CASE("a size that is not that of type and shape is refused with all values") {
  CHECK(ErrorOf("{" + Entry("w", "F32", "[2, 3]", "[0, 23]") + "}", 23) ==
        "tensor \"w\" is F32[2, 3] of 24 bytes, but its data_offsets [0, 23] hold 23");
  CHECK(Contains(ErrorOf("{" + Entry("w", "F32", "[4294967296, 4294967296]", "[0, 8]") + "}", 8),
                 "more bytes than can be"));
}

TEST_CASE("gaps, overlaps, missing and surplus bytes are refused") {
  const std::string first = Entry("a", "U8", "[4]", "[0, 4]");
  CHECK(Contains(ErrorOf("{" + first + ", " + Entry("b", "U8", "[2]", "[5, 7]") + "}", 7), "there is a gap"));
  CHECK(Contains(ErrorOf("{" + first + ", " + Entry("b", "U8", "[2]", "[3, 5]") + "}", 5), "they overlap"));
  CHECK(Contains(ErrorOf("{" + Entry("a", "U8", "[4]", "[1, 5]") + "}", 5), "there is a gap"));
  CHECK(Contains(ErrorOf("{" + first + "}", 3), "it was cut short"));
  CHECK(Contains(ErrorOf("{" + first + "}", 5), "something follows"));
}

TEST_CASE("a name given twice is refused, at any depth") {
  const std::string entry = Entry("a", "U8", "[1]", "[0, 1]");
  CHECK(Contains(ErrorOf("{" + entry + ", " + entry + "}", 1), "gives \"a\" twice"));
  CHECK(Contains(ErrorOf(R"({"a": {"dtype": "U8", "dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})", 1),
                 "twice"));
}

TEST_CASE("nesting without end is refused") {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(Contains(ErrorOf("{\"a\": {\"dtype\": " + deep + ", \"shape\": [], \"data_offsets\": []}}", 0),
                 "too deeply"));
}

TEST_CASE("members that are missing or of another kind are refused") {
  for (const char* json :
       {"", "[]", "3", "{", R"({"a": 3})", R"({"a": {}})", R"({"a": {"dtype": "U8", "shape": [1]}})",
        R"({"a": {"dtype": "U9", "shape": [1], "data_offsets": [0, 1]}})",
        R"({"a": {"dtype": 8, "shape": [1], "data_offsets": [0, 1]}})",
        R"({"a": {"dtype": "U8", "shape": 1, "data_offsets": [0, 1]}})",
        R"({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}})",
        R"({"a": {"dtype": "U8", "shape": [1.0], "data_offsets": [0, 1]}})",
        R"({"a": {"dtype": "U8", "shape": [18446744073709551615], "data_offsets": [0, 1]}})",
        R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]}})",
        R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}})",
        R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [-1, 0]}})", R"({"__metadata__": 3})",
        R"({"__metadata__": {"x": 3}})"}) {
    ErrorOf(json, 1);
  }
}

TEST_CASE("a formatted header reads back, and its data begin at a multiple of 8 bytes") {
  const std::vector<TensorInfo> tensors = {{"a.\xc3\xa9\"", TensorType::kF64, {3}},
                                           {"b", TensorType::kBool, {}}};
  const std::string bytes = FormatSafetensorsHeader(tensors, {{"k", "v"}}).value();
  CHECK(bytes.size() % 8 == 0);
  const SafetensorsHeader header = ParseSafetensorsHeader(std::string_view(bytes).substr(8), 25).value();
  REQUIRE(header.entries.size() == 2);
  CHECK(header.entries[0].info.name == tensors[0].name);
  CHECK(header.entries[1].begin == 24);
  CHECK(header.metadata.at("k") == "v");
}

TEST_CASE("tensors that cannot be written are refused") {
  for (const std::vector<TensorInfo>& tensors : std::vector<std::vector<TensorInfo>>{
           {{""}},
           {{"__metadata__"}},
           {{"a"}, {"a"}},
           {{"a\xff"}},
           {{"a", TensorType::kF32, {-1}}},
           {{"a", TensorType::kF64, {INT64_MAX}}},
           {{"a", TensorType::kU8, {INT64_MAX}}, {"b", TensorType::kU8, {1}}}}) {
    CHECK(absl::IsInvalidArgument(FormatSafetensorsHeader(tensors, {}).status()));
  }
}

TEST_CASE("every type has the name of the format and its size") {
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, int64_t>>{{"BOOL", 1},
                                                                                {"U8", 1},
                                                                                {"I8", 1},
                                                                                {"F8_E4M3", 1},
                                                                                {"F8_E5M2", 1},
                                                                                {"I16", 2},
                                                                                {"U16", 2},
                                                                                {"F16", 2},
                                                                                {"BF16", 2},
                                                                                {"I32", 4},
                                                                                {"U32", 4},
                                                                                {"F32", 4},
                                                                                {"I64", 8},
                                                                                {"U64", 8},
                                                                                {"F64", 8}}) {
    const auto type = TensorTypeFromName(name);
    REQUIRE(type.has_value());
    CHECK(TensorTypeName(*type) == name);
    CHECK(TensorTypeBytes(*type) == bytes);
  }
  CHECK_FALSE(TensorTypeFromName("F4").has_value());
}

TEST_CASE("a header with bytes changed at random is read or refused, never more") {
  const std::vector<TensorInfo> tensors = {{"a", TensorType::kF32, {2, 2}}, {"b", TensorType::kI64, {3}}};
  std::string file = FormatSafetensorsHeader(tensors, {{"k", "v"}}).value() + std::string(40, '\0');
  for (uint64_t round = 0; round < 5000; ++round) {
    std::string changed = file;
    for (uint64_t i = 0; i < 1 + round % 3; ++i) {
      changed[UniformWord(round, 2 * i) % changed.size()] = static_cast<char>(UniformWord(round, 2 * i + 1));
    }
    std::span<const std::byte> data;
    const auto header = ReadSafetensorsHeader(std::as_bytes(std::span(changed)), &data);
    if (!header.ok()) continue;
    for (const auto& entry : header->entries) CHECK(entry.end <= static_cast<int64_t>(data.size()));
  }
}

}  // namespace warpsmith
