// What a program and the library that makes its Python module agree on; plain data, for both are compiled
// apart.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_BINDING_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_BINDING_H_

#include <cstdint>

namespace warpsmith_facade {

// C++ types that cross between Python and a program, by exact type.
enum class Kind : int32_t {
  kVoid,
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat,
  kDouble,
  kString,          // std::string
  kTensor,          // a handle of one pointer
  kOptionalTensor,  // std::optional of it
  kTensors,         // std::vector of it
  kInt64s,          // std::vector<int64_t>
  kDoubles,         // std::vector<double>
  kOptionalInt64,
  kOptionalDouble,
  kTensorTuple,  // results only: a std::vector<Tensor> that Python gets as a tuple
  kNone,         // defaults only
};

// A default of a keyword argument; the text, if any, lives as long as the program.
struct Default {
  Kind kind = Kind::kVoid;  // kVoid: there is none
  int64_t integer = 0;      // booleans and integers
  double real = 0;          // kDouble
  const char* text = nullptr;
};

struct Argument {
  Kind kind = Kind::kVoid;
  const char* name = nullptr;  // null: positional only
  Default value;
};

// The largest result by value: a std::string, or an optional.
constexpr int kResultBytesMax = 64;

// One function as a program offers it.
struct Function {
  const char* name = nullptr;
  const char* doc = nullptr;
  const Argument* arguments = nullptr;
  int32_t num_arguments = 0;
  Kind result = Kind::kVoid;
  // arguments[i] points to a value of the type of its kind. The result is constructed in `result`, which has
  // kResultBytesMax bytes, and destroyed by the caller. May throw.
  void (*call)(void* closure, void* const* arguments, void* result) = nullptr;
  void* closure = nullptr;
};

}  // namespace warpsmith_facade

extern "C" {
// A new Python module (a PyObject*) that `bind` has filled through warpsmith_facade_define; null, with the
// Python error set, when it throws. The interpreter's lock is held.
void* warpsmith_facade_create_module(const char* name, void (*bind)(void* module));
// Adds a function; a second one of the same name is another overload.
void warpsmith_facade_define(void* module, const warpsmith_facade::Function* function);
void warpsmith_facade_set_doc(void* module, const char* doc);
// Frees the interpreter's lock for a while; the token goes to the other call.
void* warpsmith_facade_release_interpreter();
void warpsmith_facade_acquire_interpreter(void* token);
}

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_BINDING_H_
