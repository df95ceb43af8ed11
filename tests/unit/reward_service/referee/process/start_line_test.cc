#include "reward_service/referee/process/start_line.h"

#include "tests/support/catch.h"
#include "tests/support/mapped_start_page.h"

namespace warpsmith {
namespace {

TEST_CASE("a run begins by its own number, with its rooms") {
  const auto line = StartLine::Create();
  REQUIRE(line.ok());
  const MappedStartPage page(**line);
  CHECK((*line)->Next() == 1);
  CHECK_FALSE((*line)->is_ready());
  page->ready = 1;
  CHECK((*line)->is_ready());
  (*line)->Start({7, 2});
  CHECK(page->go == 1);
  CHECK(page->num_calls == 2);
  CHECK(page->rooms[0] == 7);
  CHECK(page->rooms[1] == 2);
  CHECK_FALSE((*line)->is_done());
  page->done = 1;
  CHECK((*line)->is_done());
  CHECK((*line)->Next() == 2);
  CHECK_FALSE((*line)->is_ready());
  CHECK_FALSE((*line)->is_done());
}

}  // namespace
}  // namespace warpsmith
