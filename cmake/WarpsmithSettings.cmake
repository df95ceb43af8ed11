# Language level, warnings, sanitizers and linker of every target of ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# What gains by -O3 names it beside its source.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(WARPSMITH_MOLD mold)
if(WARPSMITH_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# By default gcc collects garbage once its heap has 128 MB, and a precompiled header has more from the start: that took
# a tenth of a test's compilation. Collecting from 600 MB on, the largest source takes 1.1 GB.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=600000>)

# For all alike: it defines a macro, and precompiled headers want equal ones.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-pthread>)

add_library(warpsmith_options INTERFACE)
# nvcc takes none of these.
target_compile_options(warpsmith_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall> $<$<COMPILE_LANGUAGE:C,CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-unused-parameter>
  # Members left out of a designated initialiser keep their defaults.
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-missing-field-initializers>
  # GCC 12 misreads "literal" + std::string (its bug 105651).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
# At -O2 gcc 12 also warns falsely of overruns and uninitialised bytes in std::string and std::optional. The presets
# with sanitizers, where warnings are errors, keep these warnings.
foreach(warning array-bounds maybe-uninitialized stringop-overflow stringop-overread)
  target_compile_options(warpsmith_options INTERFACE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-${warning}>)
endforeach()
if(WARPSMITH_WERROR)
  target_compile_options(warpsmith_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(warpsmith_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wthread-safety>)
endif()
if(WARPSMITH_SANITIZE)
  # Torch's headers trip the null and vptr checks of UBSan through empty tensor lists; both concern their code, not ours.
  add_compile_options(-fsanitize=${WARPSMITH_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WARPSMITH_SANITIZE})
  if(WARPSMITH_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize=vptr -fno-sanitize-recover=undefined)
  endif()
  if(WARPSMITH_SANITIZE MATCHES thread)
    # Asio has fences, which ThreadSanitizer does not follow: GCC warns of them in its headers.
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
    # Between its instrumentation GCC loses sight of whether an optional holds anything.
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  endif()
endif()
