// Catch2, v2 or v3, whichever the distribution has.
#ifndef WARPSMITH_TESTS_SUPPORT_CATCH_H_
#define WARPSMITH_TESTS_SUPPORT_CATCH_H_

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#endif  // WARPSMITH_TESTS_SUPPORT_CATCH_H_
