// Every message between referee, zygotes, oracles and jails: who receives it, its fields, and the bounds that the
// receiver enforces. A namespace is a channel; structs without `op` are objects inside of messages. Those between
// service and referee are in service_messages.h, those on what a call launches in launch_messages.h. messages.py has
// the same names for the ends in Python, docs/referee_protocol.md the same tables.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_MESSAGES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_MESSAGES_H_

#include <csignal>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reward_service/jail/fields.h"
#include "reward_service/jail/service_messages.h"

namespace warpsmith {

// Between referee and zygote.
namespace zygote {

struct Warm : ToReferee {
  static constexpr char op[] = "warm";
  static constexpr AnyField code{"code"};
  static constexpr AnyField code_with_copies{"code_with_copies"};
  static constexpr TextField torch_version{"torch_version", 64};
  static constexpr TextField torch_cpu_capability{"torch_cpu_capability", 64};
  static constexpr TextField triton_version{"triton_version", 64};  // empty: programs have none
};

struct Fork : ToZygote {
  static constexpr char op[] = "fork";
  static constexpr Trusted<std::string> role{"role"};
  static constexpr char kOracle[] = "oracle";
  static constexpr char kPython[] = "python";
  static constexpr IntegerField uid{"uid", 1, 1 << 20, 64000};
  static constexpr IntegerField memory_bytes_max{"memory_bytes_max", 1 << 20, int64_t{1} << 50, 1 << 30};
  static constexpr IntegerField address_bytes_max{"address_bytes_max", 1 << 20, int64_t{1} << 50, 1 << 30};
  static constexpr IntegerField tmp_bytes_max{"tmp_bytes_max", 1 << 12, int64_t{1} << 32, 64 << 20};
  static constexpr IntegerField cpu_seconds_max{"cpu_seconds_max", 1, 86400, 10};
  static constexpr IntegerField num_threads_max{"num_threads_max", 1, 4096, 64};
  static constexpr Trusted<int> num_threads{"num_threads"};
  static constexpr BooleanField sealed{"sealed"};
  static constexpr BooleanField copies{"copies"};
  static constexpr BooleanField compiles{"compiles"};  // the child may run compilers, and what they make
  static constexpr BooleanField gpu{"gpu"};            // the child opens the GPU that its zygote may use
  static constexpr IntegerField launch_queues{"launch_queues", 1, 32, 1};  // of its context there
  static constexpr BooleanField records{"records"};  // Triton kernels, which are to be its program's own
};

struct Forked : ToReferee {
  static constexpr char op[] = "forked";
};

struct Failed : ToReferee {
  static constexpr char op[] = "failed";
  static constexpr TextField error{"error", 4096};
};

}  // namespace zygote

// From a child of a zygote, before it has a role.
namespace child {

struct Hello : ToReferee {
  static constexpr char op[] = "hello";
};

struct Failed : ToReferee {
  static constexpr char op[] = "failed";
  static constexpr TextField error{"error", 4096};
};

}  // namespace child

// Between referee and oracle.
namespace oracle {

// As DLPack describes it.
struct Tensor {
  static constexpr IntegerField code{"code", 0, 15, -1};
  static constexpr IntegerField bits{"bits", 1, 128, -1};
  static constexpr ListField shape{"shape", 16};
  static constexpr BooleanField number{"number"};      // a Python number in the reference
  static constexpr TextField name{"name", 128};        // of a parameter
  static constexpr BooleanField borrowed{"borrowed"};  // an output that shares memory in the reference, too
  static constexpr BooleanField constant{"constant"};  // a parameter that keeps its first value
  static constexpr BooleanField written{"written"};    // an input that the reference writes to
  static constexpr BooleanField result{"result"};  // such an input that is an output, behind those returned
  static constexpr AnyField strides{"strides"};    // of an input, in elements; none: row-major without gaps
  static constexpr Trusted<int64_t> offset{"offset"};  // from the referee alone: into the shared memory
};

// How far an output of a draw may lie from what is expected: see referee/tensors/comparison.h.
struct Tolerance {
  static constexpr NumberField absolute{"absolute", 0, 1e300, 0};
  static constexpr NumberField relative{"relative", 0, 1e300, 0};
  static constexpr NumberField spread{"spread", 0, 1e300, 1};
  static constexpr NumberField reach{"reach", 1, 1000, 1};
  static constexpr IntegerField outliers_max{"outliers_max", 0, int64_t{1} << 50, 0};
  static constexpr NumberField outlier_error_max{"outlier_error_max", 0, 1e300, 1e300};
  static constexpr NumberField bulk_max{"bulk_max", 0, 1, 1};
  static constexpr BooleanField margins{"margins"};  // they lie behind the outputs
};

struct Load : ToOracle {
  static constexpr char op[] = "load";
  static constexpr Trusted<int64_t> construction_seed{"construction_seed"};
  static constexpr Trusted<int> other_inputs{"other_inputs"};  // where the task has further inputs
  // On a GPU: others compute there, too, so that what fails may be their doing. No exception is an answer then.
  static constexpr Trusted<bool> beside_others{"beside_others"};
};

struct Loaded : ToReferee {
  static constexpr char op[] = "loaded";
  static constexpr ListField inputs{"inputs", 256};
  static constexpr ListField parameters{"parameters", 1024};  // a DenseNet-201 has 619
  static constexpr ListField outputs{"outputs", 256};
  static constexpr AnyField init_inputs{"init_inputs"};
  static constexpr IntegerField num_other_inputs{"num_other_inputs", 0, 4, 0};
  // Of the reference, the least seen on a GPU, with the way there and back; 0: there is none.
  static constexpr IntegerField call_us{"call_us", 0, INT32_MAX, 0};
  // What the reference's constructor took.
  static constexpr IntegerField construction_us{"construction_us", 0, INT32_MAX, 0};
  static constexpr NumberField product_share{"product_share", 0, 1, 0};
  static constexpr BooleanField moves_data{"moves_data"};
};

struct Window : ToOracle {
  static constexpr char op[] = "window";
  static constexpr Trusted<std::vector<int64_t>> input_offsets{"input_offsets"};    // inputs, then parameters
  static constexpr Trusted<std::vector<int64_t>> output_offsets{"output_offsets"};  // then margins
  static constexpr Trusted<int64_t> input_bytes{"input_bytes"};
  static constexpr Trusted<int64_t> output_bytes{"output_bytes"};  // of a slot, as input_bytes
  static constexpr Trusted<int64_t> num_slots{"num_slots"};
};

struct Open : ToReferee {
  static constexpr char op[] = "open";
};

struct Draw : ToOracle {
  static constexpr char op[] = "draw";
  static constexpr Trusted<std::string> style{"style"};
  static constexpr char kOwn[] = "own";
  static constexpr char kLarge[] = "large";
  static constexpr char kSmall[] = "small";
  static constexpr char kMixed[] = "mixed";
  static constexpr char kOutliers[] = "outliers";
  static constexpr Trusted<bool> exact{"exact"};
  static constexpr Trusted<int64_t> seed{"seed"};
  static constexpr Trusted<int64_t> parameter_seed{"parameter_seed"};  // 0: the model's own
  static constexpr Trusted<int64_t> slot{"slot"};
};

struct Drawn : ToReferee {
  static constexpr char op[] = "drawn";
  static constexpr ListField tolerances{"tolerances", 256};
};

struct Unusable : ToReferee {
  static constexpr char op[] = "unusable";
};

// What was looked at in good order is no task. What others do on a GPU would be an exception of Torch's.
struct Invalid : ToReferee {
  static constexpr char op[] = "invalid";
  static constexpr TextField error{"error", 600};
};

struct Failed : ToReferee {
  static constexpr char op[] = "failed";
  static constexpr TextField error{"error", 600};
};

}  // namespace oracle

// Between referee and jail, that of a candidate or of a baseline.
namespace jail {

// Where a Python program left an output, by its own account.
struct Place {
  static constexpr IntegerField code{"code", 0, 255, -1};
  static constexpr IntegerField bits{"bits", 0, 255, -1};
  static constexpr TextField dtype{"dtype", 40};
  static constexpr IntegerField pointer{"pointer", 4096, INT64_MAX, 0};
  static constexpr ListField shape{"shape", 64};
  static constexpr ListField strides{"strides", 64};
  // On a GPU: of the allocation that it lies in, in hexadecimal; empty for that of the inputs.
  static constexpr TextField handle{"handle", 128};
  static constexpr IntegerField offset{"offset", 0, INT64_MAX, -1};  // there, in bytes
};

// A call of load_inline, in the list that comes with `recorded`, or all Triton kernels of a program. The service alone
// reads it.
struct Extension {
  static constexpr AnyField name{"name"};  // an identifier
  static constexpr size_t kNameBytesMax = 64;
  static constexpr ListField cpp_sources{"cpp_sources", 64};
  static constexpr ListField cuda_sources{"cuda_sources", 64};
  static constexpr ListField functions{"functions", 64};
  static constexpr ListField extra_cflags{"extra_cflags", 64};
  static constexpr ListField extra_cuda_cflags{"extra_cuda_cflags", 64};
  static constexpr ListField extra_ldflags{"extra_ldflags", 64};
  static constexpr BooleanField with_cuda{"with_cuda"};
  // A list in JSON, for compiler/compile_triton.py; empty: none.
  static constexpr TextField kernels{"kernels", 4 << 20};
};

// Of which a program is told that records without it.
struct KnownGpu {
  static constexpr Trusted<std::string> name{"name"};
  static constexpr Trusted<int> capability_major{"capability_major"};
  static constexpr Trusted<int> capability_minor{"capability_minor"};
  static constexpr Trusted<int64_t> memory_bytes{"memory_bytes"};
  static constexpr Trusted<int64_t> l2_cache_bytes{"l2_cache_bytes"};
  static constexpr Trusted<int> num_multiprocessors{"num_multiprocessors"};
};

struct Begin : ToJail {
  static constexpr char op[] = "begin";
  static constexpr Trusted<nlohmann::json> inputs{"inputs"};
  static constexpr Trusted<nlohmann::json> parameters{"parameters"};
  static constexpr Trusted<nlohmann::json> outputs{"outputs"};
  static constexpr Trusted<int64_t> input_bytes{"input_bytes"};
  static constexpr Trusted<int64_t> output_bytes{"output_bytes"};
  // There are so many rooms for calls, of as many bytes as are given above each, one behind the other.
  static constexpr IntegerField num_rooms{"num_rooms", 1, 17, 1};
  static constexpr IntegerField num_threads{"num_threads", 1, 4096, 1};
  static constexpr Trusted<bool> withhold{"withhold"};  // in a sealed jail: take the libraries' code away
  // Python only.
  static constexpr Trusted<std::string> entry{"entry"};
  static constexpr char kCandidate[] = "ModelNew";
  static constexpr char kBaseline[] = "Model";
  // Of the baseline on a GPU: as the class has it, with its calls recorded once and launched together, or compiled.
  static constexpr Trusted<std::string> form{"form"};
  static constexpr char kEager[] = "eager";
  static constexpr char kCudaGraph[] = "cuda_graph";
  static constexpr char kTorchCompile[] = "torch_compile";
  static constexpr Trusted<nlohmann::json> init_inputs{"init_inputs"};
  static constexpr Trusted<int64_t> construction_seed{"construction_seed"};
};

struct Ready : ToReferee {
  static constexpr char op[] = "ready";
  static constexpr BooleanField parameters_loaded{"parameters_loaded"};
};

struct Run : ToJail {
  static constexpr char op[] = "run";
  static constexpr IntegerField slot{"slot", 0, 1, 0};
  // Of calls, one after another. Python on a GPU, with parameters: room 0 first, where they are the model's own; those
  // of the others are copied there between calls.
  static constexpr ListField rooms{"rooms", 16};
  // On a GPU, of a run that begins when the StartPage says so, in the rooms that it names: its number there; 0: at
  // once, in these.
  static constexpr IntegerField number{"number", 0, INT32_MAX, 0};
  // Python: tell Done::steady_us, of the reference alone.
  static constexpr Trusted<bool> steady{"steady"};
};

struct Done : ToReferee {
  static constexpr char op[] = "done";
  static constexpr IntegerField result{"result", INT32_MIN, INT32_MAX, INT32_MIN};
  static constexpr ListField outputs{"outputs", 256};
  static constexpr IntegerField waited_us{"waited_us", 0, INT32_MAX, 0};
  // Of a call on the GPU, but for the first third of them; 0: there are no others.
  static constexpr NumberField steady_us{"steady_us", 0, INT32_MAX, 0};
};

struct Refresh : ToJail {
  static constexpr char op[] = "refresh";
};

struct Record : ToJail {
  static constexpr char op[] = "record";
  static constexpr Trusted<nlohmann::json> init_inputs{"init_inputs"};
  static constexpr Trusted<nlohmann::json> inputs{"inputs"};
  static constexpr Trusted<bool> calls{"calls"};
  static constexpr Trusted<bool> kernels{"kernels"};    // those of Triton, too
  static constexpr Trusted<nlohmann::json> gpu{"gpu"};  // a KnownGpu
};

struct Recorded : ToReferee {
  static constexpr char op[] = "recorded";
  static constexpr IntegerField bytes{"bytes", 0, service::Recorded::kRecordingBytesMax, 0};
  static constexpr BooleanField complete{"complete"};
};

struct Failed : ToReferee {
  static constexpr char op[] = "failed";
  static constexpr TextField error{"error", 600};
};

// From a signal handler.
struct Crash : ToReferee {
  static constexpr char op[] = "crash";
  static constexpr IntegerField signal{"signal", 1, 64, SIGSEGV};
  static constexpr TextField buffer{"buffer", 16};
  static constexpr char kInput[] = "input";
  static constexpr char kOutput[] = "output";
  static constexpr IntegerField offset{"offset", -(1 << 30), int64_t{1} << 40, 0};
  static constexpr IntegerField bytes{"bytes", 0, int64_t{1} << 40, 0};
  static constexpr BooleanField withheld{"withheld"};
};

}  // namespace jail

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_MESSAGES_H_
