// Where a task's tensors lie in the buffers that referee, oracle and jail share.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_TENSOR_LAYOUT_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_TENSOR_LAYOUT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace warpsmith {

// A dense row-major tensor. `code` and `bits` as in DLPack's DLDataType.
struct TensorSpec {
  int code = 0;
  int bits = 0;
  std::vector<int64_t> shape;
  // Inputs only, in elements; empty: row-major without gaps.
  std::vector<int64_t> strides;
  bool number = false;    // a Python number in the reference; 0-d here
  std::string name;       // parameters only: its key in state_dict()
  bool constant = false;  // parameters only: they keep the values of their construction
  // Inputs only: the reference writes to it; and what it then holds is an output, behind those that are returned.
  bool written = false;
  bool result = false;
  // Outputs only: the reference's shares memory with an input, a parameter, a former output or itself.
  bool borrowed = false;
  int64_t offset = 0;  // into its buffer
  int64_t num_elements = 0;
  int64_t num_bytes = 0;  // from the first element to the last, gaps included
  int64_t margins_offset =
      0;  // outputs only: of its margins, see comparison.h, into the buffer of an exact draw
};

// All tensors of a task. Inputs and parameters share one buffer, outputs have another, with a guard region
// before the first, between any two and after the last.
struct TaskLayout {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> parameters;
  std::vector<TensorSpec> outputs;
  int64_t input_buffer_bytes = 0;
  int64_t output_buffer_bytes = 0;
  int64_t margin_bytes = 0;     // of all outputs, behind the others in the buffer of an exact draw
  int64_t reference_us = 0;     // the least that a call took in the oracle, on a GPU; 0: not known
  absl::Duration construction;  // what the reference's constructor took in the oracle
  double product_share = 0;     // of the reference's time in the oracle, what products and convolutions took
  bool moves_data = true;       // the reference calls operators that copy, join or reorder tensors

  int64_t buffer_bytes() const { return input_buffer_bytes + output_buffer_bytes; }
  int64_t exact_output_bytes() const { return output_buffer_bytes + margin_bytes; }
  int64_t tensor_bytes() const;      // without gaps and guards
  int64_t parameter_bytes() const;   // the same, of parameters alone
  int64_t own_output_bytes() const;  // of outputs that a program has to write
};

// From an oracle's description, which is not trusted: INVALID_ARGUMENT when it is malformed, over `buffer_bytes_max`,
// or too long for a jail to be told it.
absl::StatusOr<TaskLayout> MakeLayout(const nlohmann::json& described, int64_t buffer_bytes_max);

// As jails and oracles read it.
nlohmann::json ToJson(const std::vector<TensorSpec>& specs);
std::vector<int64_t> Offsets(const TaskLayout& layout, bool outputs);

// "float32", "int64"; "dtype(code, bits)" for what has no name.
std::string DtypeName(int code, int bits);
// "[2, 3]".
std::string ShapeName(const std::vector<int64_t>& shape);
// The index of element `flat` as "[i, j]".
std::string IndexName(const std::vector<int64_t>& shape, int64_t flat);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_TENSOR_LAYOUT_H_
