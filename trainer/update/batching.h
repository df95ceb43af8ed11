// How the sequences of an update are spread over ranks and micro-batches.
#ifndef WARPSMITH_TRAINER_UPDATE_BATCHING_H_
#define WARPSMITH_TRAINER_UPDATE_BATCHING_H_

#include <cstdint>
#include <vector>

namespace warpsmith {

// Indices of sequences, ascending.
using SequenceIndices = std::vector<int>;

// Shares sequences of the given lengths out to `num_ranks`, longest first to the rank with the fewest tokens
// (ties: the lowest), so that ranks finish together. The same on every rank.
std::vector<SequenceIndices> AssignToRanks(const std::vector<int64_t>& lengths, int num_ranks);

// Packs the sequences `indices` in order into micro-batches of at most `tokens_max` tokens; a longer sequence
// gets one of its own.
std::vector<SequenceIndices> PackMicroBatches(const std::vector<int64_t>& lengths,
                                              const SequenceIndices& indices, int64_t tokens_max);

// Cuts `count` items in order into `num_parts` nearly equal parts, the first ones larger; empty parts are
// left out.
std::vector<SequenceIndices> SplitEvenly(int count, int num_parts);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_BATCHING_H_
