// A device that carries out StepPlans on pages of (token id, position, version) instead of keys and values, and
// says when a row attends to anything but its own sequence.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_PAGED_DEVICE_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_PAGED_DEVICE_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rollout_workers/paged/paged_batch.h"

namespace warpsmith {

// "Samples" a token by hashing all that it may depend on.
int32_t HashedToken(absl::Span<const int32_t> tokens_before, uint64_t seed, uint64_t draw,
                    uint64_t policy_version, int32_t num_token_ids);

// The answer to one sample of `request` decoded alone, where token i is sampled under `versions[i]`; no longer
// than `versions`.
std::vector<int32_t> AnswerAlone(const paged::PagedRequest& request, int sample_index,
                                 absl::Span<const uint64_t> versions,
                                 const paged::PagedBatchOptions& options);

class FakePagedDevice {
 public:
  // Which versions a row may attend to: only the plan's; or, once its sequence has a token, also older ones, but
  // none from before it was last computed from the start.
  enum class VersionRule { kSame, kSinceStart };

  FakePagedDevice(const paged::PagedBatchOptions& options, VersionRule rule);

  // Tells what the sequences of `request` are. Their seeds must differ from all others.
  void Expect(const paged::PagedRequest& request);

  // Copies, writes, attends, samples, in the order that StepPlan prescribes. Results as Complete wants them.
  // INTERNAL, with what the row saw and should have seen.
  absl::StatusOr<std::vector<paged::TokenResult>> Run(const paged::StepPlan& plan);

  // Nothing is left in its pages and slots.
  void Fail();

  int64_t num_copies() const { return num_copies_; }
  int num_rows_max() const { return num_rows_max_; }

 private:
  struct Entry {
    int32_t token_id = -1;
    int32_t position = -1;
    uint64_t policy_version = 0;
  };
  struct Sequence {
    std::vector<int32_t> tokens;  // prompt and what was sampled
    int num_prompt_tokens = 0;
    int next_position = 0;
    uint64_t oldest_version = 0;  // that its entries may have
  };
  using Name = std::pair<int64_t, int>;  // request and sample

  absl::Status CheckShape(const paged::StepPlan& plan) const;
  absl::Status Copy(const paged::StepPlan& plan);
  absl::Status Write(const paged::StepPlan& plan);
  absl::Status Attend(const paged::StepPlan& plan, int query);
  absl::Status Sample(const paged::StepPlan& plan, int sample, std::vector<paged::TokenResult>& results);
  int32_t TokenOf(const paged::StepPlan& plan, int row) const;

  const paged::PagedBatchOptions options_;
  const VersionRule rule_;
  std::vector<Entry> entries_;        // [num_pages, page_tokens]
  std::map<int32_t, int> writers_;    // of the step: the query that writes an entry
  std::vector<int32_t> last_tokens_;  // [sequences_max + 1]
  absl::flat_hash_map<Name, Sequence> sequences_;
  absl::flat_hash_map<uint64_t, Name> name_of_seed_;
  std::vector<int> query_of_row_;
  std::vector<int32_t> seen_;  // tokens that a row attends to
  int64_t num_copies_ = 0;
  int num_rows_max_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_PAGED_DEVICE_H_
