// What a change of weights does to entries of the KV cache that sequences under way have.
#ifndef WARPSMITH_ROLLOUT_WORKERS_PAGED_ENTRIES_ON_CHANGE_H_
#define WARPSMITH_ROLLOUT_WORKERS_PAGED_ENTRIES_ON_CHANGE_H_

namespace warpsmith::paged {

enum class EntriesOnChange {
  // Nothing is under way: see PagedBatch::HoldNew.
  kRequireNone,
  // Sequences with a token keep theirs and go on: the new weights attend to entries of the old ones. None of
  // these pages becomes a prefix for others. A sequence without a token starts over, so that it is wholly of
  // the new version.
  kKeep,
  // All are given back and computed again with the new weights, tokens of the old ones included.
  kRecompute,
};

}  // namespace warpsmith::paged

#endif  // WARPSMITH_ROLLOUT_WORKERS_PAGED_ENTRIES_ON_CHANGE_H_
