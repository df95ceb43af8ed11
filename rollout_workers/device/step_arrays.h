// Where a step's arrays are. Plain pointers: what launches kernels with them needs to know no plan.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_ARRAYS_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_ARRAYS_H_

#include <cstdint>

namespace warpsmith::device {

// The fields of StepPlan (rollout_workers/paged/step_plan.h) of the same names; those of its samples apart, for a
// kernel reads one array a field.
struct StepArrays {
  uint64_t* seeds = nullptr;        // [S]
  uint64_t* draws = nullptr;        // [S]
  double* top_ps = nullptr;         // [S]
  double* min_ps = nullptr;         // [S]
  float* temperatures = nullptr;    // [S]
  int32_t* top_ks = nullptr;        // [S]
  int32_t* sample_rows = nullptr;   // [S] SampleRow::logits_row
  int32_t* sample_slots = nullptr;  // [S]
  int32_t* logits_rows = nullptr;   // [L]
  int32_t* row_indptr = nullptr;    // [Q + 1]
  int32_t* page_indptr = nullptr;   // [Q + 1]
  int32_t* token_ids = nullptr;     // [R]
  int32_t* token_slots = nullptr;   // [R]
  int32_t* positions = nullptr;     // [R]
  int32_t* kv_entries = nullptr;    // [R]
  int32_t* page_copies = nullptr;   // [copies, 3] source, destination, number of tokens
  int32_t* page_indices = nullptr;  // of all queries
};

// How many of each are in use.
struct StepShape {
  int64_t num_queries = 0;
  int64_t num_rows = 0;
  int64_t num_logits_rows = 0;
  int64_t num_samples = 0;
  int64_t rows_of_query_max = 1;
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_ARRAYS_H_
