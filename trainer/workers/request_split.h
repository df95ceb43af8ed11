// Which worker is asked for which tasks of a request, and in how many requests of its own.
#ifndef WARPSMITH_TRAINER_WORKERS_REQUEST_SPLIT_H_
#define WARPSMITH_TRAINER_WORKERS_REQUEST_SPLIT_H_

#include <map>
#include <vector>

namespace warpsmith {

// Tasks that one worker is asked for at once. Parts of a worker are numbered from 0.
struct RequestPart {
  int number = 0;
  std::vector<int> tasks;  // indices, ascending
};

// Spreads the tasks of one request over workers, in parts that a worker takes. A sample depends on its task and
// the seed of the request, not on the other tasks beside it, so no split changes a result.
class RequestSplit {
 public:
  // Of `num_tasks` tasks; a part has at most `tasks_max`, at least 1.
  RequestSplit(int num_tasks, int tasks_max);

  // The parts of `wanted` for each of `workers`, in their order. A task goes to the worker that was asked for it
  // before, in the same part, since that one holds what it has decoded; else to the one with the fewest.
  std::vector<std::vector<RequestPart>> Share(const std::vector<int>& wanted,
                                              const std::vector<int>& workers);

 private:
  // Of one task.
  struct Place {
    int worker = -1;  // the last one that was asked; -1: none yet
    int part = 0;
  };

  void Give(int task, int worker);

  const int tasks_max_;
  std::vector<Place> places_;     // by index of the task
  std::map<int, int> num_given_;  // tasks that each worker was ever asked for
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_WORKERS_REQUEST_SPLIT_H_
