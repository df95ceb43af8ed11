// What the device's half of a native CUDA program is compiled with by NVRTC, which has CUDA's own declarations and no
// headers of C: the types and limits that nvcc has without any of them being included.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_DEVICE_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_DEVICE_H_

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef long ptrdiff_t;
typedef unsigned int uint;

#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define HUGE_VALF __int_as_float(0x7f800000)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_DEVICE_H_
