// A map with a budget: the entries that were used longest ago make room.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_LRU_CACHE_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_LRU_CACHE_H_

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace warpsmith {

// Values by text key, each with a cost in bytes; the sum of costs stays within `bytes_max`. Not thread-safe.
template <typename Value>
class LruCache {
 public:
  explicit LruCache(int64_t bytes_max) : bytes_max_(bytes_max) {}

  // The value, which becomes the most recent; null when it is not here. Valid until the next Insert.
  const Value* Find(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  // Replaces a value of the same key. A value that exceeds the whole budget is not kept.
  void Insert(std::string key, Value value, int64_t cost_bytes) {
    Erase(key);
    if (cost_bytes > bytes_max_) return;
    entries_.push_front({std::move(key), std::move(value), cost_bytes});
    index_[entries_.front().key] = entries_.begin();
    bytes_ += cost_bytes;
    while (bytes_ > bytes_max_) Erase(entries_.back().key);
  }

  void Erase(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    const auto entry = found->second;
    bytes_ -= entry->cost_bytes;
    index_.erase(found);  // its key lives in the entry
    entries_.erase(entry);
  }

  size_t size() const { return entries_.size(); }
  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    Value value;
    int64_t cost_bytes;
  };

  const int64_t bytes_max_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> index_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_LRU_CACHE_H_
