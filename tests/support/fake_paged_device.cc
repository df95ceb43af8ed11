#include "tests/support/fake_paged_device.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/counter_random.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

absl::Status Wrong(const paged::StepPlan& plan, const std::string& what) {
  return absl::InternalError(absl::StrCat("Step ", plan.step, ": ", what));
}

std::string NameOf(const paged::QueryOwner& owner) {
  return absl::StrCat("sample ", owner.sample_index, " of request ", owner.request_id);
}

}  // namespace

int32_t HashedToken(absl::Span<const int32_t> tokens_before, uint64_t seed, uint64_t draw,
                    uint64_t policy_version, int32_t num_token_ids) {
  uint64_t hash = UniformWord(seed, draw) ^ UniformWord(policy_version, 1);
  for (const int32_t token : tokens_before) hash = (hash ^ static_cast<uint64_t>(token)) * 0x100000001b3;
  return static_cast<int32_t>((hash >> 20) % static_cast<uint64_t>(num_token_ids));
}

std::vector<int32_t> AnswerAlone(const paged::PagedRequest& request, int sample_index,
                                 absl::Span<const uint64_t> versions,
                                 const paged::PagedBatchOptions& options) {
  std::vector<int32_t> tokens = request.prompt_token_ids;
  for (size_t i = 0; i < versions.size(); ++i) {
    tokens.push_back(HashedToken(tokens, request.seeds[sample_index], i, versions[i], options.num_token_ids));
    if (std::count(options.stop_token_ids.begin(), options.stop_token_ids.end(), tokens.back()) > 0) break;
    if (std::ssize(tokens) == std::ssize(request.prompt_token_ids) + request.answer_tokens_max) break;
  }
  return {tokens.begin() + std::ssize(request.prompt_token_ids), tokens.end()};
}

FakePagedDevice::FakePagedDevice(const paged::PagedBatchOptions& options, VersionRule rule)
    : options_(options),
      rule_(rule),
      entries_(static_cast<size_t>(options.num_pages) * options.page_tokens),
      last_tokens_(options.sequences_max + 1, -7) {}

void FakePagedDevice::Expect(const paged::PagedRequest& request) {
  for (int i = 0; i < std::ssize(request.seeds); ++i) {
    const Name name{request.id, i};
    name_of_seed_[request.seeds[i]] = name;
    sequences_[name] = {.tokens = request.prompt_token_ids,
                        .num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size())};
  }
}

absl::StatusOr<std::vector<paged::TokenResult>> FakePagedDevice::Run(const paged::StepPlan& plan) {
  RETURN_IF_ERROR(CheckShape(plan));
  RETURN_IF_ERROR(Copy(plan));
  RETURN_IF_ERROR(Write(plan));
  for (int query = 0; query < std::ssize(plan.owners); ++query) RETURN_IF_ERROR(Attend(plan, query));
  std::vector<paged::TokenResult> results;
  for (int sample = 0; sample < plan.num_samples; ++sample) {
    RETURN_IF_ERROR(Sample(plan, sample, results));
  }
  num_rows_max_ = std::max(num_rows_max_, plan.num_rows());
  return results;
}

void FakePagedDevice::Fail() {
  std::fill(entries_.begin(), entries_.end(), Entry{});
  std::fill(last_tokens_.begin(), last_tokens_.end(), -7);
}

absl::Status FakePagedDevice::CheckShape(const paged::StepPlan& plan) const {
  const size_t num_padded = plan.decode_bucket > 0 ? plan.decode_bucket : plan.owners.size();
  const size_t num_rows = plan.token_ids.size();
  if (plan.owners.empty() || plan.row_indptr.size() != num_padded + 1 ||
      plan.page_indptr.size() != num_padded + 1 || plan.last_page_tokens.size() != num_padded) {
    return Wrong(plan, absl::StrCat(num_padded, " queries do not fit the arrays"));
  }
  if (plan.row_indptr.back() != std::ssize(plan.token_ids) || plan.positions.size() != num_rows ||
      plan.kv_entries.size() != num_rows || plan.token_slots.size() != num_rows ||
      plan.page_indptr.back() != std::ssize(plan.page_indices)) {
    return Wrong(plan, absl::StrCat(num_rows, " rows do not fit the arrays"));
  }
  for (size_t query = 0; query < num_padded; ++query) {
    const int last_row = plan.row_indptr[query + 1] - 1;
    const int num_pages = plan.page_indptr[query + 1] - plan.page_indptr[query];
    const int length = (num_pages - 1) * options_.page_tokens + plan.last_page_tokens[query];
    if (plan.positions[last_row] + 1 != length) {
      return Wrong(plan, absl::StrCat("query ", query, " ends at ", plan.positions[last_row], " and holds ",
                                      length, " entries"));
    }
    const bool pads = query >= plan.owners.size();
    if (pads != (plan.page_indices[plan.page_indptr[query]] == paged::kPaddingPage)) {
      return Wrong(plan, absl::StrCat("query ", query, " mixes padding and pages"));
    }
  }
  for (int i = 0; i < plan.num_decodes; ++i) {
    if (plan.row_indptr[i + 1] != i + 1 || plan.samples[i].logits_row != i || plan.logits_rows[i] != i) {
      return Wrong(plan, absl::StrCat("decode ", i, " is not row and sample ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status FakePagedDevice::Copy(const paged::StepPlan& plan) {
  std::set<int32_t> sources, destinations;
  for (const paged::PageCopy& copy : plan.page_copies) {
    sources.insert(copy.source);
    if (!destinations.insert(copy.destination).second) {
      return Wrong(plan, absl::StrCat("page ", copy.destination, " is written by two copies"));
    }
  }
  for (const paged::PageCopy& copy : plan.page_copies) {
    if (sources.contains(copy.destination)) {
      return Wrong(plan, absl::StrCat("page ", copy.destination, " is copied from and to"));
    }
    const auto source = entries_.begin() + int64_t{copy.source} * options_.page_tokens;
    std::copy(source, source + copy.num_tokens,
              entries_.begin() + int64_t{copy.destination} * options_.page_tokens);
    ++num_copies_;
  }
  return absl::OkStatus();
}

int32_t FakePagedDevice::TokenOf(const paged::StepPlan& plan, int row) const {
  const int32_t given = plan.token_ids[row];
  return given == paged::kTokenOnDevice ? last_tokens_[plan.token_slots[row]] : given;
}

absl::Status FakePagedDevice::Write(const paged::StepPlan& plan) {
  writers_.clear();
  for (int query = 0; query < std::ssize(plan.owners); ++query) {
    for (int row = plan.row_indptr[query]; row < plan.row_indptr[query + 1]; ++row) {
      if (!writers_.emplace(plan.kv_entries[row], query).second) {
        return Wrong(plan, absl::StrCat("entry ", plan.kv_entries[row], " is written by two rows"));
      }
      entries_[plan.kv_entries[row]] = {.token_id = TokenOf(plan, row),
                                        .position = plan.positions[row],
                                        .policy_version = plan.policy_version};
    }
  }
  return absl::OkStatus();
}

absl::Status FakePagedDevice::Attend(const paged::StepPlan& plan, int query) {
  const paged::QueryOwner& owner = plan.owners[query];
  Sequence& sequence = sequences_[{owner.request_id, owner.sample_index}];
  const int first = plan.row_indptr[query];
  const int last = plan.row_indptr[query + 1] - 1;
  // It goes on where it was, or starts over behind the prefix that it found.
  if (plan.positions[first] != sequence.next_position) sequence.oldest_version = plan.policy_version;
  sequence.next_position = plan.positions[last] + 1;
  for (int row = first; row <= last; ++row) {
    if (plan.positions[row] != plan.positions[first] + row - first) {
      return Wrong(plan, absl::StrCat("positions of ", NameOf(owner), " have a gap"));
    }
  }
  if (sequence.next_position > std::ssize(sequence.tokens)) {
    return Wrong(plan, absl::StrCat(NameOf(owner), " is ahead of its tokens"));
  }
  const bool has_begun = std::ssize(sequence.tokens) > sequence.num_prompt_tokens;
  const bool may_be_older = rule_ == VersionRule::kSinceStart && has_begun;
  const uint64_t oldest = may_be_older ? sequence.oldest_version : plan.policy_version;
  for (int position = 0; position <= plan.positions[last]; ++position) {
    const int32_t page = plan.page_indices[plan.page_indptr[query] + position / options_.page_tokens];
    const int32_t place = page * options_.page_tokens + position % options_.page_tokens;
    const Entry& entry = entries_[place];
    if (const auto writer = writers_.find(place); writer != writers_.end() && writer->second != query) {
      return Wrong(plan,
                   absl::StrCat(NameOf(owner), " sees entry ", place, " at position ", position, ", which ",
                                NameOf(plan.owners[writer->second]), " writes in the same step"));
    }
    if (entry.token_id != sequence.tokens[position] || entry.position != position ||
        entry.policy_version < oldest || entry.policy_version > plan.policy_version) {
      return Wrong(plan, absl::StrCat(NameOf(owner), " of version ", plan.policy_version, " (since ", oldest,
                                      ") sees token ", entry.token_id, ", position ", entry.position,
                                      ", version ", entry.policy_version, " in page ", page, " at position ",
                                      position, ", where its token is ", sequence.tokens[position]));
    }
  }
  return absl::OkStatus();
}

absl::Status FakePagedDevice::Sample(const paged::StepPlan& plan, int index,
                                     std::vector<paged::TokenResult>& results) {
  const paged::SampleRow& sample = plan.samples[index];
  const int row = plan.logits_rows[sample.logits_row];
  const int query = static_cast<int>(std::upper_bound(plan.row_indptr.begin(), plan.row_indptr.end(), row) -
                                     plan.row_indptr.begin() - 1);
  const paged::QueryOwner& owner = plan.owners[query];
  const Name name = name_of_seed_[sample.seed];
  Sequence& sequence = sequences_[name];
  if (name.first != owner.request_id) {
    return Wrong(plan, absl::StrCat("request ", name.first, " samples from ", NameOf(owner)));
  }
  if (sample.draw != sequence.tokens.size() - sequence.num_prompt_tokens) {
    return Wrong(plan, absl::StrCat("draw ", sample.draw, " of ", NameOf(owner), " with ",
                                    sequence.tokens.size(), " tokens"));
  }
  if (plan.positions[row] + 1 != std::ssize(sequence.tokens)) {
    return Wrong(plan, absl::StrCat(NameOf(owner), " samples at position ", plan.positions[row]));
  }
  // From what the pages hold, not from what the sequence should be.
  seen_.clear();
  for (int position = 0; position <= plan.positions[row]; ++position) {
    const int32_t page = plan.page_indices[plan.page_indptr[query] + position / options_.page_tokens];
    seen_.push_back(
        entries_[int64_t{page} * options_.page_tokens + position % options_.page_tokens].token_id);
  }
  if (name.second != owner.sample_index) {  // a follower goes on from here
    const Sequence& leader = sequences_[{owner.request_id, owner.sample_index}];
    sequence.next_position = leader.next_position;
    sequence.oldest_version = leader.oldest_version;
  }
  const int32_t token =
      HashedToken(seen_, sample.seed, sample.draw, plan.policy_version, options_.num_token_ids);
  sequence.tokens.push_back(token);
  last_tokens_[sample.slot] = token;
  results.push_back({.token_id = token, .log_prob = -static_cast<float>(token)});
  return absl::OkStatus();
}

}  // namespace warpsmith
