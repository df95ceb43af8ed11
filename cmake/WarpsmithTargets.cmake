# The only functions that make targets.
#
#   warpsmith_library(NAME SOURCES... [PUBLIC...] [PRIVATE...] [TORCH])
#     A static library, a folder each. PUBLIC: what its headers include; PRIVATE: what only its sources do.
#     TORCH: links LibTorch privately; whoever includes a header that names a tensor says TORCH as well.
#   warpsmith_binary(NAME SOURCES... LINK... [TORCH])
#     A program in <build>/bin.
#   warpsmith_test(NAME SOURCES... LINK... [TORCH] [LABELS...] [TIMEOUT seconds] [ARGUMENTS...] [ALONE | LANE])
#     A Catch2 program, run by CTest as a whole; two tests run at a time. ALONE: it judges times, so nothing runs beside
#     it. LANE: it pins processes to the core of a reward service's lane, so no other test that does runs beside it.
#     Tests with the label `tsan` make up the target `tsan_tests`, which is what runs under ThreadSanitizer: threads of
#     one process, and no other process that matters.
#   warpsmith_python_test(NAME PATHS... [LABELS...] [TIMEOUT seconds] [ALONE | LANE])
#     pytest over files or folders of this folder, with the binaries' folder in WARPSMITH_BIN_DIR.
#   warpsmith_fuzzer(NAME LIBRARY...)
#     NAME.cc with libFuzzer where the build has it: a program in <build>/fuzz, part of the target `fuzzers`.
#     Elsewhere a test that runs NAME.cc over the files of corpus/NAME.

# Lists a target of ours for warpsmith_group_targets() and warpsmith_precompile_targets(). TORCH: a boolean.
function(warpsmith_note name torch)
  set_property(GLOBAL APPEND PROPERTY WARPSMITH_TARGETS ${name})
  set_target_properties(${name} PROPERTIES WARPSMITH_TORCH ${torch})
endfunction()

function(warpsmith_library name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
    # Protobuf and gRPC come before LibTorch on every link line.
    target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE warpsmith_options ${arg_PRIVATE})
    if(arg_TORCH)
      target_link_libraries(${name} PRIVATE warpsmith::torch)
    endif()
    warpsmith_note(${name} ${arg_TORCH})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC})
  endif()
endfunction()

function(warpsmith_binary name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE warpsmith_options ${arg_LINK})
  if(arg_TORCH)
    target_link_libraries(${name} PRIVATE warpsmith::torch)
  endif()
  warpsmith_note(${name} ${arg_TORCH})
endfunction()

add_custom_target(tsan_tests)

function(warpsmith_test name)
  cmake_parse_arguments(arg "TORCH;ALONE;LANE" "TIMEOUT" "SOURCES;LINK;LABELS;ARGUMENTS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE warpsmith_options tests_support ${arg_LINK})
  if(arg_TORCH)
    target_link_libraries(${name} PRIVATE warpsmith::torch)
  endif()
  warpsmith_note(${name} ${arg_TORCH})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGUMENTS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(environment WARPSMITH_BIN_DIR=${CMAKE_BINARY_DIR}/bin ASAN_OPTIONS=detect_leaks=0
    "TSAN_OPTIONS=second_deadlock_stack=1 suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan_suppressions.txt")
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment}" RUN_SERIAL ${arg_ALONE})
  if(arg_LANE)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK lane)
  endif()
  if("tsan" IN_LIST arg_LABELS)
    add_dependencies(tsan_tests ${name})
  endif()
endfunction()

function(warpsmith_python_test name)
  cmake_parse_arguments(arg "ALONE;LANE" "TIMEOUT" "PATHS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  list(TRANSFORM arg_PATHS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_test(NAME ${name} COMMAND ${WARPSMITH_PYTHON} -B -m pytest ${arg_PATHS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "WARPSMITH_BIN_DIR=${CMAKE_BINARY_DIR}/bin;WARPSMITH_PYTHON=${WARPSMITH_PYTHON}"
    RUN_SERIAL ${arg_ALONE})
  if(arg_LANE)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK lane)
  endif()
endfunction()

function(warpsmith_fuzzer name)
  add_executable(${name} ${name}.cc)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE warpsmith_options core_base ${ARGN})
  warpsmith_note(${name} OFF)
  if(WARPSMITH_SANITIZE MATCHES fuzzer)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
  else()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE tests_fuzz_replay)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT 120 ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  endif()
endfunction()

# warpsmith_links(OUT TARGET WANTED [COMPILED])
#   Sets OUT to whether TARGET links WANTED, directly or through other targets. COMPILED: only through those whose
#   headers TARGET's sources may include.
function(warpsmith_links out target wanted)
  cmake_parse_arguments(arg "COMPILED" "" "" ${ARGN})
  set(seen)
  get_target_property(waiting ${target} LINK_LIBRARIES)
  while(waiting)
    list(POP_FRONT waiting name)
    if(name MATCHES "^\\$<LINK_ONLY:(.*)>$")
      if(arg_COMPILED)
        continue()
      endif()
      set(name ${CMAKE_MATCH_1})
    endif()
    if(name STREQUAL wanted)
      set(${out} ON PARENT_SCOPE)
      return()
    endif()
    if(NOT TARGET "${name}" OR name IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${name})
    get_target_property(more ${name} INTERFACE_LINK_LIBRARIES)
    if(more)
      list(APPEND waiting ${more})
    endif()
  endwhile()
  set(${out} OFF PARENT_SCOPE)
endfunction()

# Makes `programs`, all but tests, and `what_cuda_adds`, what the preset cuda has beyond release: what links CUDA.
# Called once, when all targets are there.
function(warpsmith_group_targets)
  add_custom_target(programs)
  add_custom_target(what_cuda_adds)
  get_property(targets GLOBAL PROPERTY WARPSMITH_TARGETS)
  foreach(target ${targets})
    get_target_property(folder ${target} SOURCE_DIR)
    if(NOT folder MATCHES "^${CMAKE_SOURCE_DIR}/tests")
      add_dependencies(programs ${target})
    endif()
    warpsmith_links(with_cuda ${target} warpsmith::cuda)
    if(with_cuda)
      add_dependencies(what_cuda_adds ${target})
    endif()
  endforeach()
endfunction()
