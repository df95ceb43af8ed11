#include "rollout_workers/paged/invariants.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith::paged {
namespace {

absl::Status Broken(const PagedSequence& sequence, const std::string& what) {
  return absl::InternalError(absl::StrCat("Sample ", sequence.sample_index, " of request ",
                                          sequence.request->id, " ", what, ": ", sequence.num_computed,
                                          " of ", sequence.num_tokens(), " tokens computed, ",
                                          sequence.pages.size(), " pages, slot ", sequence.slot));
}

absl::Status CheckFollower(const PagedSequence& sequence) {
  const PagedSequence& leader = *sequence.leader;
  if (leader.request != sequence.request || leader.leader != nullptr || leader.has_begun() ||
      leader.state != SequenceState::kRunning) {
    return Broken(sequence, "waits for a sibling that does not compute the prompt");
  }
  if (sequence.state != SequenceState::kRunning || !sequence.pages.empty() || sequence.has_begun()) {
    return Broken(sequence, "waits for a sibling and is further itself");
  }
  return absl::OkStatus();
}

absl::Status CheckQueues(const PagedSequence& sequence, const SequenceTable& table) {
  auto* const key = const_cast<PagedSequence*>(&sequence);
  const bool runs = sequence.state == SequenceState::kRunning;
  const bool waits = sequence.state == SequenceState::kWaiting;
  const bool in_running =
      std::binary_search(table.running().begin(), table.running().end(), key, ByArrival());
  if (in_running != runs || (sequence.slot >= 0) != runs) return Broken(sequence, "is out of its slot");
  if (table.returning().contains(key) != (waits && sequence.has_begun()) ||
      table.fresh().contains(key) != (waits && !sequence.has_begun()) ||
      table.holders().contains(key) != (!runs && !sequence.pages.empty())) {
    return Broken(sequence, "is in the wrong queue");
  }
  return absl::OkStatus();
}

absl::Status CheckSequence(const PagedSequence& sequence, const SequenceTable& table, const PagePool& pool) {
  if (std::ssize(sequence.pages) != NumPages(sequence.num_computed, pool.page_tokens())) {
    return Broken(sequence, "has not the pages that it needs");
  }
  if (sequence.num_computed > sequence.num_tokens()) return Broken(sequence, "is ahead of its tokens");
  if (sequence.answer.size() != sequence.log_probs.size() ||
      sequence.answer.size() != sequence.policy_versions.size()) {
    return Broken(sequence, "has tokens without log-probs or versions");
  }
  if (sequence.leader != nullptr) RETURN_IF_ERROR(CheckFollower(sequence));
  return CheckQueues(sequence, table);
}

}  // namespace

absl::Status CheckPagedInvariants(const SequenceTable& table, const PagePool& pool,
                                  const absl::flat_hash_map<int64_t, int>& num_in_flight) {
  std::vector<int32_t> references(pool.num_pages());
  std::set<int> slots;
  for (const PagedSequence* const sequence : table.sequences()) {
    RETURN_IF_ERROR(CheckSequence(*sequence, table, pool));
    for (const int32_t page : sequence->pages) ++references[page];
    if (sequence->slot >= 0 && !slots.insert(sequence->slot).second) {
      return Broken(*sequence, "has the slot of another");
    }
    const auto in_flight = num_in_flight.find(sequence->arrival);
    if (sequence->num_in_flight != (in_flight == num_in_flight.end() ? 0 : in_flight->second)) {
      return Broken(*sequence, absl::StrCat("counts ", sequence->num_in_flight, " tokens in flight"));
    }
  }
  if (table.running().size() != slots.size()) {
    return absl::InternalError(
        absl::StrCat(table.running().size(), " sequences run in ", slots.size(), " slots"));
  }
  return pool.CheckInvariants(references);
}

}  // namespace warpsmith::paged
