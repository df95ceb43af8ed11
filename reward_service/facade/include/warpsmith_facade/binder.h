// The part of pybind11 that answers use, PYBIND11_MODULE and def, without Python's headers: a function's
// types become a list of kinds, and a library that has pybind11 does the rest. Knows no tensor type by name:
// the includer says WARPSMITH_FACADE_BIND_TENSOR(type) once.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_BINDER_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_BINDER_H_

#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpsmith_facade/binding.h"

namespace warpsmith_facade {

// A type without a kind does not compile: the program needs the real pybind11.
template <class T>
struct KindOf;
#define WARPSMITH_FACADE_KIND(type, name)     \
  template <>                                 \
  struct KindOf<type> {                       \
    static constexpr Kind value = Kind::name; \
  };
WARPSMITH_FACADE_KIND(void, kVoid)
WARPSMITH_FACADE_KIND(bool, kBool)
WARPSMITH_FACADE_KIND(int8_t, kInt8)
WARPSMITH_FACADE_KIND(uint8_t, kUint8)
WARPSMITH_FACADE_KIND(int16_t, kInt16)
WARPSMITH_FACADE_KIND(int32_t, kInt32)
WARPSMITH_FACADE_KIND(uint32_t, kUint32)
WARPSMITH_FACADE_KIND(long, kInt64)
WARPSMITH_FACADE_KIND(long long, kInt64)
WARPSMITH_FACADE_KIND(unsigned long, kUint64)
WARPSMITH_FACADE_KIND(unsigned long long, kUint64)
WARPSMITH_FACADE_KIND(float, kFloat)
WARPSMITH_FACADE_KIND(double, kDouble)
WARPSMITH_FACADE_KIND(std::string, kString)
WARPSMITH_FACADE_KIND(std::vector<int64_t>, kInt64s)
WARPSMITH_FACADE_KIND(std::vector<double>, kDoubles)
WARPSMITH_FACADE_KIND(std::optional<int64_t>, kOptionalInt64)
WARPSMITH_FACADE_KIND(std::optional<double>, kOptionalDouble)

template <class T>
using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

// What a result is constructed as: tuples of tensors travel as a vector.
template <class T>
struct ResultOf {
  static constexpr Kind kind = KindOf<T>::value;
  template <class F>
  static void Construct(void* place, F&& make) {
    static_assert(sizeof(T) <= kResultBytesMax, "too large to be returned");
    new (place) T(make());
  }
};
template <>
struct ResultOf<void> {
  static constexpr Kind kind = Kind::kVoid;
  template <class F>
  static void Construct(void*, F&& make) {
    make();
  }
};
template <class Tensor, class... Same>
struct ResultOf<std::tuple<Tensor, Same...>> {
  static_assert(KindOf<Tensor>::value == Kind::kTensor && (std::is_same_v<Tensor, Same> && ...),
                "tuples of tensors only");
  static constexpr Kind kind = Kind::kTensorTuple;
  template <class F>
  static void Construct(void* place, F&& make) {
    std::apply([&](auto&&... parts) { new (place) std::vector<Tensor>{std::move(parts)...}; }, make());
  }
};

template <class Callable, class Result, class... Arguments, size_t... i>
void CallWith(void* closure, void* const* arguments, void* result, std::index_sequence<i...>) {
  (void)arguments;
  ResultOf<Bare<Result>>::Construct(result, [&]() -> decltype(auto) {
    return (*static_cast<Callable*>(closure))(
        static_cast<Arguments>(*static_cast<Bare<Arguments>*>(arguments[i]))...);
  });
}

// A callable of a known signature.
template <class Callable, class Result, class... Arguments>
struct Bound {
  static constexpr int kNumArguments = sizeof...(Arguments);
  static void Call(void* closure, void* const* arguments, void* result) {
    CallWith<Callable, Result, Arguments...>(closure, arguments, result,
                                             std::index_sequence_for<Arguments...>());
  }
  // Both live as long as the program, as its module does.
  static Function Describe(const char* name, Callable callable) {
    auto* arguments = new Argument[sizeof...(Arguments) + 1];
    int count = 0;
    ((arguments[count++].kind = KindOf<Bare<Arguments>>::value), ...);
    Function function;
    function.name = name;
    function.arguments = arguments;
    function.num_arguments = count;
    function.result = ResultOf<Bare<Result>>::kind;
    function.call = &Call;
    function.closure = new Callable(std::move(callable));
    return function;
  }
};

template <class Result, class... Arguments>
Function Describe(const char* name, Result (*function)(Arguments...)) {
  return Bound<Result (*)(Arguments...), Result, Arguments...>::Describe(name, function);
}
template <class Lambda, class Result, class... Arguments>
Function DescribeLambda(const char* name, Lambda lambda, Result (Lambda::*)(Arguments...) const) {
  return Bound<Lambda, Result, Arguments...>::Describe(name, std::move(lambda));
}
template <class Lambda, class = decltype(&Lambda::operator())>
Function Describe(const char* name, Lambda lambda) {
  return DescribeLambda(name, std::move(lambda), &Lambda::operator());
}

}  // namespace warpsmith_facade

namespace pybind11 {

struct none {};
struct arg_v {
  const char* name;
  warpsmith_facade::Default value;
};
// A keyword; `py::arg("eps") = 1e-5` has a default.
struct arg {
  explicit constexpr arg(const char* text) : name(text) {}
  arg_v operator=(bool value) const { return With(warpsmith_facade::Kind::kBool, value, 0); }
  arg_v operator=(int value) const { return With(warpsmith_facade::Kind::kInt64, value, 0); }
  arg_v operator=(long value) const { return With(warpsmith_facade::Kind::kInt64, value, 0); }
  arg_v operator=(double value) const { return With(warpsmith_facade::Kind::kDouble, 0, value); }
  arg_v operator=(float value) const { return With(warpsmith_facade::Kind::kDouble, 0, value); }
  arg_v operator=(std::nullopt_t) const { return With(warpsmith_facade::Kind::kNone, 0, 0); }
  arg_v operator=(none) const { return With(warpsmith_facade::Kind::kNone, 0, 0); }
  arg_v operator=(const char* value) const {
    arg_v with = With(warpsmith_facade::Kind::kString, 0, 0);
    with.value.text = value;
    return with;
  }
  arg& noconvert() = delete;  // needs the real one
  const char* name;

 private:
  arg_v With(warpsmith_facade::Kind kind, int64_t integer, double real) const {
    return {name, {kind, integer, real, nullptr}};
  }
};
namespace literals {
constexpr arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

class gil_scoped_release {
 public:
  gil_scoped_release() : token_(warpsmith_facade_release_interpreter()) {}
  ~gil_scoped_release() { warpsmith_facade_acquire_interpreter(token_); }
  gil_scoped_release(const gil_scoped_release&) = delete;
  gil_scoped_release& operator=(const gil_scoped_release&) = delete;

 private:
  void* token_;
};

class module_ {
 public:
  explicit module_(void* module) : module_object_(module) {}

  // Extras are a docstring, arg and arg_v, in any order.
  template <class F, class... Extras>
  module_& def(const char* name, F&& callable, const Extras&... extras) {
    warpsmith_facade::Function function =
        warpsmith_facade::Describe(name, Decayed(std::forward<F>(callable)));
    int position = 0;
    (Apply(&function, &position, extras), ...);
    warpsmith_facade_define(module_object_, &function);
    return *this;
  }

  class Doc {
   public:
    explicit Doc(void* module) : module_(module) {}
    Doc& operator=(const char* text) {
      warpsmith_facade_set_doc(module_, text);
      return *this;
    }

   private:
    void* module_;
  };
  Doc doc() { return Doc(module_object_); }

 private:
  template <class F>
  static std::decay_t<F> Decayed(F&& callable) {
    return std::forward<F>(callable);
  }
  static void Apply(warpsmith_facade::Function* function, int*, const char* doc) { function->doc = doc; }
  static void Apply(warpsmith_facade::Function* function, int* position, const arg& keyword) {
    Apply(function, position, arg_v{keyword.name, {}});
  }
  static void Apply(warpsmith_facade::Function* function, int* position, const arg_v& keyword) {
    if (*position >= function->num_arguments) return;  // the library refuses what does not fit
    auto* arguments = const_cast<warpsmith_facade::Argument*>(function->arguments);
    arguments[*position].name = keyword.name;
    arguments[*position].value = keyword.value;
    ++*position;
  }

  void* module_object_;
};
using module = module_;

}  // namespace pybind11
namespace py = pybind11;

namespace torch {
template <class F>
F wrap_pybind_function(F function) {
  return function;
}
}  // namespace torch

// The tensor type of the program, and what is made of it.
#define WARPSMITH_FACADE_BIND_TENSOR(type)                    \
  namespace warpsmith_facade {                                \
  WARPSMITH_FACADE_KIND(type, kTensor)                        \
  WARPSMITH_FACADE_KIND(std::optional<type>, kOptionalTensor) \
  WARPSMITH_FACADE_KIND(std::vector<type>, kTensors)          \
  }

#define WARPSMITH_FACADE_JOIN_(a, b) a##b
#define WARPSMITH_FACADE_JOIN(a, b) WARPSMITH_FACADE_JOIN_(a, b)
#define WARPSMITH_FACADE_TEXT_(a) #a
#define WARPSMITH_FACADE_TEXT(a) WARPSMITH_FACADE_TEXT_(a)
#define PYBIND11_MODULE(name, variable)                                                            \
  static void warpsmith_facade_bind(::pybind11::module_&);                                         \
  extern "C" __attribute__((visibility("default"))) void* WARPSMITH_FACADE_JOIN(PyInit_, name)() { \
    return warpsmith_facade_create_module(WARPSMITH_FACADE_TEXT(name), [](void* module) {          \
      ::pybind11::module_ bound(module);                                                           \
      warpsmith_facade_bind(bound);                                                                \
    });                                                                                            \
  }                                                                                                \
  static void warpsmith_facade_bind([[maybe_unused]] ::pybind11::module_& variable)

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_BINDER_H_
