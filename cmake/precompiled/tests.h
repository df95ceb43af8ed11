// Headers that nearly every test includes beside those of libraries.h.
#ifndef WARPSMITH_CMAKE_PRECOMPILED_TESTS_H_
#define WARPSMITH_CMAKE_PRECOMPILED_TESTS_H_

#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#endif  // WARPSMITH_CMAKE_PRECOMPILED_TESTS_H_
