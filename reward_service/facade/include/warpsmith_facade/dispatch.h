// AT_DISPATCH_*: the body once for each element type, with `scalar_t` its name.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_DISPATCH_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_DISPATCH_H_

#include "warpsmith_facade/check.h"

namespace warpsmith_facade {

// The C++ type of an element type.
template <ScalarType type>
struct CppTypeOf;
#define WARPSMITH_FACADE_CPP_TYPE(name, cpp_type) \
  template <>                                     \
  struct CppTypeOf<ScalarType::name> {            \
    using type = cpp_type;                        \
  };
WARPSMITH_FACADE_CPP_TYPE(Byte, uint8_t)
WARPSMITH_FACADE_CPP_TYPE(Char, int8_t)
WARPSMITH_FACADE_CPP_TYPE(Short, int16_t)
WARPSMITH_FACADE_CPP_TYPE(Int, int)
WARPSMITH_FACADE_CPP_TYPE(Long, int64_t)
WARPSMITH_FACADE_CPP_TYPE(Half, ::warpsmith_facade::Half)
WARPSMITH_FACADE_CPP_TYPE(Float, float)
WARPSMITH_FACADE_CPP_TYPE(Double, double)
WARPSMITH_FACADE_CPP_TYPE(Bool, bool)
WARPSMITH_FACADE_CPP_TYPE(BFloat16, ::warpsmith_facade::BFloat16)
#undef WARPSMITH_FACADE_CPP_TYPE

}  // namespace warpsmith_facade

#define AT_DISPATCH_CASE(TYPE, ...)                                                       \
  case TYPE: {                                                                            \
    using scalar_t [[maybe_unused]] = typename ::warpsmith_facade::CppTypeOf<TYPE>::type; \
    return __VA_ARGS__();                                                                 \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                            \
  [&] {                                                                                                \
    const ::warpsmith_facade::ScalarType warpsmith_type = TYPE;                                        \
    switch (warpsmith_type) {                                                                          \
      __VA_ARGS__                                                                                      \
      default:                                                                                         \
        ::warpsmith_facade::FailUnimplemented(                                                         \
            __func__, __FILE__, __LINE__,                                                              \
            ::warpsmith_facade::text::Of('"', NAME, "\" not implemented for '", warpsmith_type, "'")); \
    }                                                                                                  \
  }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)                            \
  AT_DISPATCH_CASE(::warpsmith_facade::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(::warpsmith_facade::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                          \
  AT_DISPATCH_CASE(::warpsmith_facade::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::warpsmith_facade::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::warpsmith_facade::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::warpsmith_facade::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::warpsmith_facade::ScalarType::Short, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(EXTRA, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                               \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(EXTRA, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(EXTRA1, EXTRA2, TYPE, NAME, ...)                                \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                        \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(EXTRA1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(EXTRA2, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::warpsmith_facade::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(                          \
      TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(EXTRA, TYPE, NAME, ...)         \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                  \
                     AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
                         AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(EXTRA, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(EXTRA1, EXTRA2, TYPE, NAME, ...)                                         \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                            \
                     AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)                                           \
                         AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(EXTRA1, __VA_ARGS__) \
                             AT_DISPATCH_CASE(EXTRA2, __VA_ARGS__))

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_DISPATCH_H_
