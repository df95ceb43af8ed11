#include "reward_service/referee/process/withheld_code.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

PermittedCode Code() {
  const auto code = PermittedCode::FromJson(nlohmann::json::parse(
      R"({"/lib/libc.so.6": true, "/torch/libtorch_cpu.so": [[16, 2], [32, 1]], "/numpy/libblas.so": []})"));
  REQUIRE(code.ok());
  return *code;
}

MappedCode Mapping(const std::string& path, uint64_t first_page, uint64_t num_pages) {
  return {.start = 0x10000,
          .end = 0x10000 + num_pages * kCodePageBytes,
          .file_offset = first_page * kCodePageBytes,
          .path = path};
}

bool IsForeign(const MappedCode& mapping) {
  const std::vector<MappedCode> mappings = {Mapping("/lib/libc.so.6", 3, 4), mapping};
  const MappedCode* const found = Code().FindForeign(mappings);
  CHECK((found == nullptr || found == &mappings[1]));
  return found != nullptr;
}

TEST_CASE("a whole library, permitted pages, own libraries and the kernel's page are no foreign code") {
  CHECK_FALSE(IsForeign(Mapping("/lib/libc.so.6", 0, 999)));
  CHECK_FALSE(IsForeign(Mapping("/torch/libtorch_cpu.so", 16, 2)));
  CHECK_FALSE(IsForeign(Mapping("/torch/libtorch_cpu.so", 17, 1)));
  CHECK_FALSE(IsForeign(Mapping("/torch/libtorch_cpu.so", 32, 1)));
  CHECK_FALSE(IsForeign(Mapping("/candidate/candidate.so", 1, 7)));
  CHECK_FALSE(IsForeign(Mapping("[vdso]", 0, 2)));
  CHECK_FALSE(IsForeign(Mapping("[vsyscall]", 0, 1)));
}

TEST_CASE("any other page of a withheld library is foreign") {
  CHECK(IsForeign(Mapping("/torch/libtorch_cpu.so", 15, 1)));
  CHECK(IsForeign(Mapping("/torch/libtorch_cpu.so", 15, 2)));
  CHECK(IsForeign(Mapping("/torch/libtorch_cpu.so", 16, 3)));
  CHECK(IsForeign(Mapping("/torch/libtorch_cpu.so", 16, 17)));
  CHECK(IsForeign(Mapping("/torch/libtorch_cpu.so", 18, 1)));
  CHECK(IsForeign(Mapping("/torch/libtorch_cpu.so", 33, 1)));
  CHECK(IsForeign(Mapping("/numpy/libblas.so", 0, 1)));
}

TEST_CASE("other files, memory of no file and writable code are foreign") {
  CHECK(IsForeign(Mapping("/tmp/libc.so.6", 0, 1)));
  CHECK(IsForeign(Mapping("/other/libtorch_cpu.so", 16, 1)));
  CHECK(IsForeign(Mapping("/candidates/x.so", 0, 1)));
  CHECK(IsForeign(Mapping("/memfd:warpsmith", 0, 1)));
  CHECK(IsForeign(Mapping("", 0, 1)));
  CHECK(IsForeign(Mapping("[heap]", 0, 1)));
  MappedCode writable = Mapping("/candidate/candidate.so", 0, 1);
  writable.writable = true;
  CHECK(IsForeign(writable));
}

TEST_CASE("what a zygote says is read strictly") {
  CHECK(Code().num_pages() == 3);
  const char* const malformed[] = {"[]",
                                   "3",
                                   R"({"a": false})",
                                   R"({"a": "all"})",
                                   R"({"a": [1]})",
                                   R"({"a": [[1]]})",
                                   R"({"a": [[1, -1]]})",
                                   R"({"a": [[1, 2, 3]]})",
                                   R"({"a": null})"};
  for (const char* text : malformed) {
    INFO(text);
    CHECK_FALSE(PermittedCode::FromJson(nlohmann::json::parse(text)).ok());
  }
}

TEST_CASE("a process that is gone cannot be checked") { CHECK_FALSE(Code().Check(1 << 30).ok()); }

}  // namespace
}  // namespace warpsmith
