# Precompiled headers: what most sources include of other projects, parsed once a kind of target instead of once a file.
#
# A precompiled header is taken where the flags are those that it was made with, and ignored elsewhere. So there is one
# for each of four kinds: libraries and tests, each with protobuf and gRPC or without. None holds a header of ours, so
# that editing one compiles no more than before. LibTorch's headers must not meet protobuf's: TORCH targets take the
# kind without. clang cannot read what gcc precompiles, so the presets that clang-tidy and the fuzzers use have none.

# Makes the precompiled header KIND out of HEADERS..., in the flags of the folder that calls.
function(warpsmith_precompiled kind)
  if(NOT WARPSMITH_PRECOMPILE)
    return()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(precompiled_${kind} OBJECT ${source})
  target_link_libraries(precompiled_${kind} PRIVATE warpsmith_options)
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/cmake/precompiled/)
  target_precompile_headers(precompiled_${kind} PRIVATE ${ARGN})
endfunction()

# Gives each target of ours the precompiled header that its links allow. Called once, when all targets are there.
function(warpsmith_precompile_targets)
  if(NOT WARPSMITH_PRECOMPILE)
    return()
  endif()
  get_property(targets GLOBAL PROPERTY WARPSMITH_TARGETS)
  foreach(target ${targets})
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(type ${target} TYPE)
    if(folder MATCHES "^${CMAKE_SOURCE_DIR}/tests/bench")
      continue()  # in flags of its own
    elseif(folder MATCHES "^${CMAKE_SOURCE_DIR}/tests/")
      set(kind tests)
    elseif(type STREQUAL STATIC_LIBRARY)
      set(kind libraries)
    else()
      continue()  # programs are a main each
    endif()
    get_target_property(torch ${target} WARPSMITH_TORCH)
    if(NOT torch AND TARGET proto)
      warpsmith_links(rpc ${target} proto COMPILED)
      if(rpc)
        string(APPEND kind _rpc)
      endif()
    endif()
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
  endforeach()
endfunction()
