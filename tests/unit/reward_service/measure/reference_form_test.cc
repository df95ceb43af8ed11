#include "reward_service/measure/reference_form.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("every form is found by its key, and has time to be measured in") {
  for (const ReferenceForm& form : ReferenceForms()) {
    CHECK(FindReferenceForm(form.key) == &form);
    CHECK_FALSE(form.name.empty());
    CHECK(form.time_max > absl::ZeroDuration());
  }
  CHECK(FindReferenceForm("cuda_graph")->name == "cuda graph");
  CHECK(FindReferenceForm("eager") == nullptr);
}

TEST_CASE("a judgement has the time of all forms that it measures") {
  CHECK(FormsTimeMax({}) == absl::ZeroDuration());
  CHECK(FormsTimeMax({"unheard of"}) == absl::ZeroDuration());
  absl::Duration sum;
  std::vector<std::string> keys;
  for (const ReferenceForm& form : ReferenceForms()) {
    keys.emplace_back(form.key);
    sum += form.time_max;
  }
  CHECK(FormsTimeMax(keys) == sum);
}

}  // namespace
}  // namespace warpsmith
