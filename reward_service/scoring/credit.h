// Credits a CORRECT program where libraries may have done a part of its work.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_

#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

// With fewer samples, what a profile shows of vectors and threads is not used.
constexpr int kProfileSamplesMin = 20;

// Returns the credit of a CORRECT candidate, from its timing and the libraries that its task allows:
//
//   W        timing.library_share; 0 where the task allows the libraries that ran: "blas" stands for products of
//            matrices and convolutions, "torch" for all libraries
//   speedup  (1 - W) own + W saved
//
// Own work counts by its speed. What libraries did counts by the part of the reference's time that it saves, so that
// calling a library pays nothing by itself. W belongs to the room and the reference; the program has no say in it.
v1::Credit ComputeCredit(const v1::Timing& timing, const v1::Task& task);

// Returns whether the program did all of the work itself, and its parameters could be set after its construction.
bool IsAllOwn(const v1::Credit& credit, const v1::Timing& timing);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_CREDIT_H_
