#include "rollout_workers/paged/paged_sequence.h"

#include <numeric>

#include "tests/support/catch.h"

namespace warpsmith::paged {
namespace {

constexpr int kPageTokens = 4;

PagedRequest Prompt(int num_tokens, int answer_tokens_max = 100) {
  PagedRequest request{.id = 1, .seeds = {1, 2, 3}, .answer_tokens_max = answer_tokens_max};
  request.prompt_token_ids.resize(num_tokens);
  std::iota(request.prompt_token_ids.begin(), request.prompt_token_ids.end(), 10);
  return request;
}

PagedSequence SequenceOf(const PagedRequest& request, int sample_index = 0) {
  return {.request = &request, .sample_index = sample_index};
}

}  // namespace

TEST_CASE("a sequence holds the pages that its computed positions take, none spare") {
  PagePool pool(10, kPageTokens, 1);
  const PagedRequest request = Prompt(20);
  PagedSequence sequence = SequenceOf(request);
  std::vector<PageCopy> copies;
  for (const auto& [num_tokens, num_pages] : {std::pair{3, 1}, {1, 1}, {1, 2}, {8, 4}}) {
    ExtendPages(num_tokens, pool, sequence, copies);
    CHECK(std::ssize(sequence.pages) == num_pages);
  }
  CHECK(sequence.num_computed == 13);
  CHECK(copies.empty());
  ReleasePages(pool, sequence);
  CHECK(pool.num_available() == 9);
  CHECK(sequence.num_computed == 0);
}

TEST_CASE("who writes into a shared page gets a copy of it, and the last sharer writes in place") {
  PagePool pool(10, kPageTokens, 1);
  const PagedRequest request = Prompt(6);
  PagedSequence a = SequenceOf(request, 0);
  PagedSequence b = SequenceOf(request, 1);
  PagedSequence c = SequenceOf(request, 2);
  std::vector<PageCopy> copies;
  ExtendPages(6, pool, a, copies);
  SharePages(a, pool, b);
  SharePages(a, pool, c);
  const int32_t shared = a.pages[1];
  CHECK(pool.ref_counts()[shared] == 3);

  ExtendPages(1, pool, b, copies);
  REQUIRE(copies.size() == 1);
  CHECK(copies[0] == PageCopy{.source = shared, .destination = b.pages[1], .num_tokens = 2});
  CHECK(b.pages[0] == a.pages[0]);
  ExtendPages(1, pool, a, copies);
  CHECK(copies.size() == 2);
  CHECK(a.pages[1] != b.pages[1]);
  ExtendPages(1, pool, c, copies);
  CHECK(copies.size() == 2);
  CHECK(c.pages[1] == shared);
  CHECK(pool.ref_counts()[shared] == 1);
  CHECK(pool.ref_counts()[a.pages[0]] == 3);
}

TEST_CASE("a prompt that fills its last page is shared without a copy") {
  PagePool pool(10, kPageTokens, 1);
  const PagedRequest request = Prompt(8);
  PagedSequence a = SequenceOf(request, 0);
  PagedSequence b = SequenceOf(request, 1);
  std::vector<PageCopy> copies;
  ExtendPages(8, pool, a, copies);
  SharePages(a, pool, b);
  ExtendPages(1, pool, a, copies);
  ExtendPages(1, pool, b, copies);
  CHECK(copies.empty());
  CHECK(a.pages[1] == b.pages[1]);
  CHECK(a.pages[2] != b.pages[2]);
}

TEST_CASE("full pages are found by another sequence that begins alike, but never all of its tokens") {
  PagePool pool(20, kPageTokens, 1);
  std::vector<PageCopy> copies;
  const PagedRequest request = Prompt(10);
  PagedSequence a = SequenceOf(request);
  ExtendPages(10, pool, a, copies);
  PublishFullPages(pool, a);
  CHECK(a.num_published == 2);

  for (const auto& [length, num_found] :
       {std::pair{3, 0}, {4, 0}, {5, 1}, {8, 1}, {9, 2}, {12, 2}, {13, 2}}) {
    const PagedRequest other = Prompt(length);
    CAPTURE(length);
    CHECK(std::ssize(FindPrefixPages(SequenceOf(other), pool)) == num_found);
  }
  PagedRequest differs = Prompt(12);
  differs.prompt_token_ids[5] = 0;
  CHECK(FindPrefixPages(SequenceOf(differs), pool).size() == 1);
  differs.prompt_token_ids[0] = 0;
  CHECK(FindPrefixPages(SequenceOf(differs), pool).empty());

  const PagedRequest same = Prompt(12);
  PagedSequence b = SequenceOf(same);
  TakePrefixPages(FindPrefixPages(b, pool), pool, b);
  CHECK(b.num_computed == 8);
  CHECK(b.num_wanted() == 4);
  CHECK(pool.ref_counts()[a.pages[1]] == 2);
  ExtendPages(4, pool, b, copies);
  PublishFullPages(pool, b);
  CHECK(b.num_published == 3);
}

TEST_CASE("a page is published only when its tokens are known") {
  PagePool pool(20, kPageTokens, 1);
  const PagedRequest request = Prompt(3);
  PagedSequence sequence = SequenceOf(request);
  std::vector<PageCopy> copies;
  ExtendPages(3, pool, sequence, copies);
  sequence.num_in_flight = 2;
  ExtendPages(1, pool, sequence, copies);  // the page is full, its last token is in flight
  PublishFullPages(pool, sequence);
  CHECK(sequence.num_published == 0);
  sequence.answer = {77};
  sequence.num_in_flight = 1;
  PublishFullPages(pool, sequence);
  CHECK(sequence.num_published == 1);
  CHECK(pool.FindBlock(kEmptyPrefix, {10, 11, 12, 77}) == sequence.pages[0]);
}

TEST_CASE("who computed what is known already keeps its page and continues the known prefix") {
  PagePool pool(20, kPageTokens, 1);
  const PagedRequest request = Prompt(9);
  PagedSequence a = SequenceOf(request);
  PagedSequence b = SequenceOf(request, 1);
  std::vector<PageCopy> copies;
  ExtendPages(4, pool, a, copies);
  ExtendPages(8, pool, b, copies);
  PublishFullPages(pool, a);
  PublishFullPages(pool, b);
  CHECK(b.num_published == 2);
  CHECK(pool.prefix_id(b.pages[0]) == kNoPrefix);
  const PagedSequence c = SequenceOf(request, 2);
  CHECK(FindPrefixPages(c, pool) == std::vector<int32_t>{a.pages[0], b.pages[1]});
}

TEST_CASE("a sequence that keeps entries of old weights publishes nothing until it starts over") {
  PagePool pool(20, kPageTokens, 1);
  const PagedRequest request = Prompt(9);
  PagedSequence sequence = SequenceOf(request);
  std::vector<PageCopy> copies;
  ExtendPages(2, pool, sequence, copies);
  pool.ForgetContents(2);
  sequence.prefix = kNoPrefix;
  ExtendPages(7, pool, sequence, copies);
  PublishFullPages(pool, sequence);
  CHECK(FindPrefixPages(SequenceOf(request, 1), pool).empty());
  ReleasePages(pool, sequence);
  ExtendPages(9, pool, sequence, copies);
  PublishFullPages(pool, sequence);
  CHECK(FindPrefixPages(SequenceOf(request, 1), pool).size() == 2);
}

TEST_CASE("a prefix outlives what continues it") {
  PagePool pool(4, kPageTokens, 1);
  const PagedRequest request = Prompt(9);
  PagedSequence sequence = SequenceOf(request);
  std::vector<PageCopy> copies;
  ExtendPages(8, pool, sequence, copies);
  PublishFullPages(pool, sequence);
  ReleasePages(pool, sequence);
  pool.Allocate();
  pool.Allocate();  // takes a cached page
  CHECK(FindPrefixPages(SequenceOf(request, 1), pool).size() == 1);
}

TEST_CASE("what a sequence wants follows from its counts") {
  const PagedRequest request = Prompt(5, 2);
  PagedSequence sequence = SequenceOf(request);
  CHECK(sequence.num_wanted() == 5);
  CHECK_FALSE(sequence.is_decoding());
  CHECK_FALSE(sequence.has_begun());
  sequence.num_computed = 4;
  CHECK_FALSE(sequence.is_decoding());  // the last row of a prompt is a chunk
  sequence.num_computed = 5;
  sequence.num_in_flight = 1;
  CHECK(sequence.is_decoding());
  CHECK(sequence.num_wanted() == 1);
  sequence.num_computed = 6;
  sequence.answer = {3};
  CHECK(sequence.is_full());
  CHECK(sequence.num_wanted() == 0);
  CHECK(sequence.token_id(4) == 14);
  CHECK(sequence.token_id(5) == 3);
}

}  // namespace warpsmith::paged
