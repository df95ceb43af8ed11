#include "reward_service/referee/tensors/late_pairs.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace warpsmith {
namespace {

// A batch of sixteen calls that has used a hundredth of its inputs before is right by luck once in 30,000 times: 0.99
// to the power of 16 times 64.
constexpr int64_t kNumParts = 64;

int64_t NumWords(const TensorSpec& spec) { return spec.num_bytes / LatePair::kWordBytes; }

class Drawing {
 public:
  explicit Drawing(std::mt19937_64& random) : random_(random) {}

  void AddSomeOf(std::span<const TensorSpec> tensors) {
    int64_t all = 0, before = 0;  // words
    for (const TensorSpec& spec : tensors) all += NumWords(spec);
    const int64_t num_parts = std::min(kNumParts, all);
    auto spec = tensors.begin();
    for (int64_t i = 0; i < num_parts; ++i) {
      const int64_t word = Draw(i * all / num_parts, (i + 1) * all / num_parts);
      for (; word >= before + NumWords(*spec); ++spec) before += NumWords(*spec);
      AddPair(*spec, word - before);
    }
  }
  std::vector<LatePair> pairs() && { return std::move(pairs_); }

 private:
  int64_t Draw(int64_t begin, int64_t end) {
    return begin + static_cast<int64_t>(random_() % static_cast<uint64_t>(end - begin));
  }
  void AddPair(const TensorSpec& spec, int64_t word) {
    if (NumWords(spec) == 1) return;
    const int64_t other = (word + Draw(1, NumWords(spec))) % NumWords(spec);
    const LatePair pair{spec.offset + word * LatePair::kWordBytes,
                        spec.offset + other * LatePair::kWordBytes};
    if (taken_.contains(pair.first) || taken_.contains(pair.second)) return;
    taken_.insert({pair.first, pair.second});
    pairs_.push_back(pair);
  }

  std::mt19937_64& random_;
  std::set<int64_t> taken_;
  std::vector<LatePair> pairs_;
};

}  // namespace

std::vector<LatePair> DrawLatePairs(const TaskLayout& layout, std::mt19937_64& random) {
  Drawing drawing(random);
  for (const TensorSpec& spec : layout.inputs) drawing.AddSomeOf({&spec, 1});
  drawing.AddSomeOf(layout.parameters);
  return std::move(drawing).pairs();
}

}  // namespace warpsmith
