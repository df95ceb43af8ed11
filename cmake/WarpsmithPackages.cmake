# What the distribution provides. Debian 12 and Ubuntu 24.04 name the same things slightly differently.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(Catch2 CONFIG REQUIRED)  # v2 or v3; tests/support/catch.h hides which

if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

if(WARPSMITH_CORE_ONLY)
  return()
endif()

find_package(CURL 7.87 REQUIRED)  # CURLOPT_QUICK_EXIT
find_package(Protobuf REQUIRED)  # Debian's protobuf has no CONFIG package
find_package(gRPC CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)

# Debian's grpc++_reflection registers itself through static initialisers and must not be dropped by the linker.
find_library(WARPSMITH_GRPC_REFLECTION grpc++_reflection REQUIRED)
find_program(WARPSMITH_PROTOC protoc REQUIRED)
find_program(WARPSMITH_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
