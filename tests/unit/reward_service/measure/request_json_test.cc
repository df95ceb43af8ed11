#include "reward_service/measure/request_json.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

nlohmann::json Record(const std::string& name) {
  nlohmann::json record = {{"name", name}, {"with_cuda", false}};
  for (const char* const list :
       {"cpp_sources", "cuda_sources", "functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags"})
    record[list] = nlohmann::json::array();
  return record;
}

TEST_CASE("Triton kernels are taken from a recording that was asked for them, and from no other") {
  nlohmann::json kernels = Record("triton_kernels");
  kernels["kernels"] = "[{}]";
  const nlohmann::json list = {Record("extension"), kernels};
  const auto own = ExtensionsFromJson(list, /*own_kernels=*/true);
  REQUIRE(own.ok());
  REQUIRE(own->size() == 2);
  CHECK((*own)[0].kernels.empty());
  CHECK((*own)[1].kernels == "[{}]");
  const auto foreign = ExtensionsFromJson(list, /*own_kernels=*/false);
  REQUIRE(foreign.ok());
  REQUIRE(foreign->size() == 1);
  CHECK((*foreign)[0].name == "extension");
}

TEST_CASE("what is no list of extensions is refused") {
  CHECK_FALSE(ExtensionsFromJson(nlohmann::json(), true).ok());
  CHECK_FALSE(ExtensionsFromJson({Record("no identifier")}, true).ok());
}

}  // namespace
}  // namespace warpsmith
