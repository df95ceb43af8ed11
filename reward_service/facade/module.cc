// Python modules of programs that were compiled without Python: pybind11 at work on a program's list of
// kinds.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "warpsmith_facade/binding.h"

namespace warpsmith_facade {
namespace {

using Value =
    std::variant<bool, int8_t, uint8_t, int16_t, int32_t, uint32_t, int64_t, uint64_t, float, double,
                 std::string, at::Tensor, std::optional<at::Tensor>, std::vector<at::Tensor>,
                 std::vector<int64_t>, std::vector<double>, std::optional<int64_t>, std::optional<double>>;

// Calls `visit` with the tag of a kind's type.
template <class T>
struct Tag {
  using type = T;
};
template <class Visitor>
decltype(auto) WithType(Kind kind, Visitor&& visit) {
  switch (kind) {
    case Kind::kBool:
      return visit(Tag<bool>{});
    case Kind::kInt8:
      return visit(Tag<int8_t>{});
    case Kind::kUint8:
      return visit(Tag<uint8_t>{});
    case Kind::kInt16:
      return visit(Tag<int16_t>{});
    case Kind::kInt32:
      return visit(Tag<int32_t>{});
    case Kind::kUint32:
      return visit(Tag<uint32_t>{});
    case Kind::kInt64:
      return visit(Tag<int64_t>{});
    case Kind::kUint64:
      return visit(Tag<uint64_t>{});
    case Kind::kFloat:
      return visit(Tag<float>{});
    case Kind::kDouble:
      return visit(Tag<double>{});
    case Kind::kString:
      return visit(Tag<std::string>{});
    case Kind::kTensor:
      return visit(Tag<at::Tensor>{});
    case Kind::kOptionalTensor:
      return visit(Tag<std::optional<at::Tensor>>{});
    case Kind::kTensors:
    case Kind::kTensorTuple:
      return visit(Tag<std::vector<at::Tensor>>{});
    case Kind::kInt64s:
      return visit(Tag<std::vector<int64_t>>{});
    case Kind::kDoubles:
      return visit(Tag<std::vector<double>>{});
    case Kind::kOptionalInt64:
      return visit(Tag<std::optional<int64_t>>{});
    case Kind::kOptionalDouble:
      return visit(Tag<std::optional<double>>{});
    case Kind::kVoid:
    case Kind::kNone:
      break;
  }
  throw std::logic_error("a kind that no value has");
}

py::object Object(const Default& value) {
  switch (value.kind) {
    case Kind::kBool:
      return py::bool_(value.integer != 0);
    case Kind::kInt64:
      return py::int_(value.integer);
    case Kind::kDouble:
      return py::float_(value.real);
    case Kind::kString:
      return py::str(value.text);
    default:
      return py::none();
  }
}

// The Python object that is argument `i`; counts the keywords that were used. Not matching ends the attempt
// at this overload, as in pybind11.
py::object Given(const Function& function, int i, const py::args& args, const py::kwargs& kwargs,
                 size_t* num_keywords) {
  const Argument& argument = function.arguments[i];
  if (static_cast<size_t>(i) < args.size()) return args[static_cast<size_t>(i)];
  if (argument.name != nullptr && kwargs.contains(argument.name)) {
    ++*num_keywords;
    return kwargs[argument.name];
  }
  if (argument.value.kind == Kind::kVoid) throw py::reference_cast_error();
  return Object(argument.value);
}

std::vector<Value> Arguments(const Function& function, const py::args& args, const py::kwargs& kwargs) {
  if (args.size() > static_cast<size_t>(function.num_arguments)) throw py::reference_cast_error();
  std::vector<Value> values;
  values.reserve(static_cast<size_t>(function.num_arguments));
  size_t num_keywords = 0;
  for (int i = 0; i < function.num_arguments; ++i) {
    const py::object given = Given(function, i, args, kwargs, &num_keywords);
    try {
      WithType(function.arguments[i].kind, [&](auto type) {
        using T = typename decltype(type)::type;
        values.emplace_back(std::in_place_type<T>, py::cast<T>(given));
      });
    } catch (const py::cast_error&) {
      throw py::reference_cast_error();
    }
  }
  if (num_keywords != kwargs.size()) throw py::reference_cast_error();
  return values;
}

// Takes the result out of the place where the program constructed it.
template <class T>
py::object Take(void* place, Kind kind) {
  T* const result = std::launder(static_cast<T*>(place));
  T value = std::move(*result);
  result->~T();
  if constexpr (std::is_same_v<T, std::vector<at::Tensor>>) {
    if (kind == Kind::kTensorTuple) return py::tuple(py::cast(value));
  }
  return py::cast(std::move(value));
}

py::object Call(const Function& function, const py::args& args, const py::kwargs& kwargs) {
  std::vector<Value> values = Arguments(function, args, kwargs);
  std::vector<void*> pointers;
  for (Value& value : values) {
    pointers.push_back(std::visit([](auto& held) -> void* { return &held; }, value));
  }
  alignas(std::max_align_t) std::array<unsigned char, kResultBytesMax> place;
  HANDLE_TH_ERRORS
  function.call(function.closure, pointers.data(), place.data());
  END_HANDLE_TH_ERRORS_PYBIND
  if (function.result == Kind::kVoid) return py::none();
  return WithType(function.result, [&](auto type) {
    return Take<typename decltype(type)::type>(place.data(), function.result);
  });
}

}  // namespace
}  // namespace warpsmith_facade

extern "C" {

__attribute__((visibility("default"))) void* warpsmith_facade_create_module(const char* name,
                                                                            void (*bind)(void* module)) {
  try {
    // Lives as long as the interpreter, as CPython wants it.
    py::module_ module = py::module_::create_extension_module(name, nullptr, new py::module_::module_def);
    bind(module.ptr());
    return module.release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
  }
  return nullptr;
}

__attribute__((visibility("default"))) void warpsmith_facade_define(
    void* module, const warpsmith_facade::Function* function) {
  const auto bound = py::reinterpret_borrow<py::module_>(static_cast<PyObject*>(module));
  const auto call = [described = *function](const py::args& args, const py::kwargs& kwargs) {
    return warpsmith_facade::Call(described, args, kwargs);
  };
  const char* const doc = function->doc != nullptr ? function->doc : "";
  py::module_(bound).def(function->name, call, doc);
}

__attribute__((visibility("default"))) void warpsmith_facade_set_doc(void* module, const char* doc) {
  py::reinterpret_borrow<py::object>(static_cast<PyObject*>(module)).attr("__doc__") = doc;
}

__attribute__((visibility("default"))) void* warpsmith_facade_release_interpreter() {
  return PyEval_SaveThread();
}

__attribute__((visibility("default"))) void warpsmith_facade_acquire_interpreter(void* token) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(token));
}

}  // extern "C"
