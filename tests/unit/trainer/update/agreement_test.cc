#include "trainer/update/agreement.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/support/catch.h"
#include "tests/unit/core/distributed/ranks.h"

namespace warpsmith {

TEST_CASE("rank 0's text is the text of all, however long it is") {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100000}}) {
    const auto statuses = ControlOutcomes(3, [&](ControlPlane& control) -> absl::Status {
      const std::string own = control.rank() == 0 ? std::string(size, 'x') : "another opinion";
      ASSIGN_OR_RETURN(const std::string text, ShareText(control, own));
      return text == std::string(size, 'x') ? absl::OkStatus() : absl::InternalError(text);
    });
    for (const absl::Status& status : statuses) CHECK(status.ToString() == "OK");
  }
}

TEST_CASE("rank 0's error stops all, with its words") {
  const std::string words(5000, 'w');
  const auto statuses = ControlOutcomes(2, [&](ControlPlane& control) {
    absl::StatusOr<std::string> own = std::string("fine here");
    if (control.rank() == 0) own = absl::DataLossError(words);
    return ShareText(control, std::move(own)).status();
  });
  CHECK(statuses[0] == absl::DataLossError(words));
  CHECK(statuses[1] == absl::DataLossError("rank 0: " + words));
}

TEST_CASE("one rank's error stops all; who has an error of his own says that") {
  const auto statuses = ControlOutcomes(4, [](ControlPlane& control) {
    const int rank = control.rank();
    if (rank == 1 || rank == 2) return ShareStatus(control, absl::NotFoundError(absl::StrCat("of ", rank)));
    return ShareStatus(control, absl::OkStatus());
  });
  CHECK(statuses[0] == absl::NotFoundError("rank 1: of 1"));
  CHECK(statuses[1] == absl::NotFoundError("of 1"));
  CHECK(statuses[2] == absl::NotFoundError("of 2"));
  CHECK(statuses[3] == absl::NotFoundError("rank 1: of 1"));
}

TEST_CASE("the largest number of all ranks is every rank's") {
  for (const absl::Status& status : ControlOutcomes(3, [](ControlPlane& control) -> absl::Status {
         ASSIGN_OR_RETURN(const int largest, LargestOverRanks(control, control.rank() == 1 ? 7 : 2));
         return largest == 7 ? absl::OkStatus() : absl::InternalError("another number");
       })) {
    CHECK(status.ToString() == "OK");
  }
}

TEST_CASE("where all are well, all go on") {
  for (const absl::Status& status :
       ControlOutcomes(3, [](ControlPlane& c) { return ShareStatus(c, absl::OkStatus()); })) {
    CHECK(status.ok());
  }
}

}  // namespace warpsmith
