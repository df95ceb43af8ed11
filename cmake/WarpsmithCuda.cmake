# nvcc: the machine's, else the one of the Python packages nvidia-cuda-nvcc, -crt, -nvvm and -cccl 13.0.
get_filename_component(site_packages ${WARPSMITH_TORCH_DIR} DIRECTORY)
set(wheel_cuda ${site_packages}/nvidia/cu13)

find_program(WARPSMITH_NVCC nvcc HINTS /usr/local/cuda/bin ${wheel_cuda}/bin)
if(NOT WARPSMITH_NVCC)
  message(FATAL_ERROR "No nvcc on PATH, in /usr/local/cuda/bin or in ${wheel_cuda}/bin. ./dev build cuda installs one.")
endif()
set(CMAKE_CUDA_COMPILER ${WARPSMITH_NVCC})
set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no CUDA20 for nvcc 13
set(CMAKE_CUDA_ARCHITECTURES 90a)
set(CMAKE_CUDA_FLAGS_INIT "-L${wheel_cuda}/lib")
enable_language(CUDA)

# Headers and libraries are those of the LibTorch wheel, so that one CUDA runtime is in the process.
add_library(warpsmith_cuda INTERFACE)
add_library(warpsmith::cuda ALIAS warpsmith_cuda)
# nvcc has its own headers, of the same version.
target_compile_options(warpsmith_cuda INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-idirafter ${wheel_cuda}/include>")
target_link_libraries(warpsmith_cuda INTERFACE
  ${wheel_cuda}/lib/libcudart.so.13 ${wheel_cuda}/lib/libcublasLt.so.13 ${wheel_cuda}/lib/libcublas.so.13)
target_link_options(warpsmith_cuda INTERFACE -Wl,-rpath,${wheel_cuda}/lib)

add_library(warpsmith_nccl INTERFACE)
add_library(warpsmith::nccl ALIAS warpsmith_nccl)
target_compile_options(warpsmith_nccl INTERFACE "SHELL:-idirafter ${site_packages}/nvidia/nccl/include")
target_link_libraries(warpsmith_nccl INTERFACE ${site_packages}/nvidia/nccl/lib/libnccl.so.2 warpsmith::cuda)
target_link_options(warpsmith_nccl INTERFACE -Wl,-rpath,${site_packages}/nvidia/nccl/lib)
