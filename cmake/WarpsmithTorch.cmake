# LibTorch from the Python package `torch` as the imported target warpsmith::torch.
#
# The package's own CMake config wants a CUDA toolkit and a GPU at configure time and adds stray link folders, so this
# module names the four libraries itself. Headers come by -idirafter: the package ships protobuf headers of its own,
# which must lose against the distribution's.
set(WARPSMITH_TORCH_VERSION 2.11.0)

if(NOT WARPSMITH_PYTHON)
  set(cached "$ENV{HOME}/.cache/warpsmith/python/bin/python")
  if(EXISTS ${cached})
    set(WARPSMITH_PYTHON ${cached} CACHE FILEPATH "" FORCE)
  else()
    find_program(found python3 REQUIRED)
    set(WARPSMITH_PYTHON ${found} CACHE FILEPATH "" FORCE)
  endif()
endif()

if(NOT WARPSMITH_TORCH_DIR)
  execute_process(
    COMMAND ${WARPSMITH_PYTHON} -c
      "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${WARPSMITH_PYTHON} has no package 'torch'. Run ./dev build, which installs it, or set "
      "WARPSMITH_TORCH_DIR to the folder of an installed torch ${WARPSMITH_TORCH_VERSION}.")
  endif()
  set(WARPSMITH_TORCH_DIR ${torch_dir} CACHE PATH "" FORCE)
endif()

file(STRINGS ${WARPSMITH_TORCH_DIR}/version.py version_line REGEX "^__version__")
if(NOT version_line MATCHES "'${WARPSMITH_TORCH_VERSION}[+']")
  message(FATAL_ERROR "${WARPSMITH_TORCH_DIR} is not torch ${WARPSMITH_TORCH_VERSION}: ${version_line}. "
    "Set WARPSMITH_TORCH_DIR to a folder that is.")
endif()
message(STATUS "LibTorch: ${WARPSMITH_TORCH_DIR}")
execute_process(
  COMMAND ${WARPSMITH_PYTHON} -c "import sysconfig; print(sysconfig.get_paths()['include'])"
  OUTPUT_VARIABLE WARPSMITH_PYTHON_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)

set(torch_libraries c10 torch_cpu)
if(WARPSMITH_CUDA)
  list(APPEND torch_libraries c10_cuda torch_cuda)
endif()

add_library(warpsmith_torch INTERFACE)
add_library(warpsmith::torch ALIAS warpsmith_torch)
target_compile_options(warpsmith_torch INTERFACE
  "SHELL:-idirafter ${WARPSMITH_TORCH_DIR}/include"
  "SHELL:-idirafter ${WARPSMITH_TORCH_DIR}/include/torch/csrc/api/include")
target_compile_definitions(warpsmith_torch INTERFACE
  AT_PER_OPERATOR_HEADERS USE_DISTRIBUTED)
# The dispatcher finds operators through static initialisers, which --as-needed would drop.
target_link_options(warpsmith_torch INTERFACE -Wl,-rpath,${WARPSMITH_TORCH_DIR}/lib)
target_link_libraries(warpsmith_torch INTERFACE -Wl,--no-as-needed)
foreach(library ${torch_libraries})
  target_link_libraries(warpsmith_torch INTERFACE ${WARPSMITH_TORCH_DIR}/lib/lib${library}.so)
endforeach()
target_link_libraries(warpsmith_torch INTERFACE -Wl,--as-needed)
