#include "reward_service/grading/recent_grades.h"

#include <utility>

#include "absl/time/clock.h"

namespace warpsmith {
namespace {

const std::string& TenantOf(const RecentGrade& recent) {
  static const std::string nobody;
  return recent.prepared->tenant == nullptr ? nobody : recent.prepared->tenant->name;
}

int64_t BytesOf(const RecentGrade& recent) {
  return static_cast<int64_t>(recent.prepared->request.SpaceUsedLong() + recent.grade.SpaceUsedLong() +
                              recent.prepared->source.size());
}

bool Matches(const RecentGrade& recent, const RecentGradeFilter& filter) {
  const v1::Grade& grade = recent.grade;
  const bool has_reward = grade.reward().has_value();
  if (TenantOf(recent) != filter.tenant || recent.sequence >= filter.before) return false;
  if (filter.verdict.has_value() && grade.verdict() != *filter.verdict) return false;
  if (filter.hack_family.has_value() && grade.hack_family() != *filter.hack_family) return false;
  if (filter.reward_min.has_value() && !(has_reward && grade.reward().value() >= *filter.reward_min))
    return false;
  return !filter.reward_max.has_value() || (has_reward && grade.reward().value() <= *filter.reward_max);
}

}  // namespace

void RecentGrades::Add(std::shared_ptr<const PreparedRequest> prepared, const v1::Grade& grade) {
  auto recent = std::make_shared<RecentGrade>();
  recent->time = absl::Now();
  recent->prepared = std::move(prepared);
  recent->grade = grade;
  absl::MutexLock lock(&mutex_);
  recent->sequence = next_sequence_++;
  ++counts_[TenantOf(*recent)][grade.verdict()];
  bytes_ += BytesOf(*recent);
  grades_.push_back(std::move(recent));
  while (grades_.size() > 1 && (bytes_ > bytes_max_ || grades_.size() > num_max_)) {
    bytes_ -= BytesOf(*grades_.front());
    grades_.pop_front();
  }
}

std::vector<std::shared_ptr<const RecentGrade>> RecentGrades::List(const RecentGradeFilter& filter) const {
  std::vector<std::shared_ptr<const RecentGrade>> list;
  absl::MutexLock lock(&mutex_);
  for (auto recent = grades_.rbegin(); recent != grades_.rend() && list.size() < filter.num_max; ++recent) {
    if (Matches(**recent, filter)) list.push_back(*recent);
  }
  return list;
}

std::shared_ptr<const RecentGrade> RecentGrades::Find(const std::string& tenant, int64_t sequence) const {
  absl::MutexLock lock(&mutex_);
  if (grades_.empty()) return nullptr;
  const int64_t index = sequence - grades_.front()->sequence;
  if (index < 0 || index >= std::ssize(grades_)) return nullptr;
  const auto& found = grades_[static_cast<size_t>(index)];
  return TenantOf(*found) == tenant ? found : nullptr;
}

std::map<v1::Verdict, int64_t> RecentGrades::VerdictCounts(const std::string& tenant) const {
  absl::MutexLock lock(&mutex_);
  const auto found = counts_.find(tenant);
  return found == counts_.end() ? std::map<v1::Verdict, int64_t>() : found->second;
}

}  // namespace warpsmith
