// For the device's half of a program that includes stdint.h.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_STDINT_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_STDINT_H_

typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_NATIVE_STDINT_H_
