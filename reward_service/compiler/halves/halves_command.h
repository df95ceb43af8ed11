// How both halves of a native CUDA program are compiled beside each other: in a quarter of nvcc's time.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_HALVES_COMMAND_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_HALVES_COMMAND_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith {

struct HalvesTools {
  std::string host_compiler;
  std::vector<std::string> host_flags;  // with which it finds CUDA's headers
  std::vector<std::string> link_flags;
  std::filesystem::path fatbinary;
  std::filesystem::path nvrtc;                         // its library
  std::vector<std::filesystem::path> include_folders;  // of CUDA's headers, for NVRTC
  std::filesystem::path program;                       // warpsmith-nvrtc
  std::filesystem::path header_directory;              // with native_host.h and native_device.h
  std::filesystem::path stub_directory;                // with a libcudart.so that is only a name
};

// Where the command finds the halves, and leaves the machine code.
inline constexpr char kDeviceHalfFile[] = "/tmp/device.cu";
inline constexpr char kHostHalfFile[] = "/tmp/host.cc";
inline constexpr char kHalvesCubinFile[] = "/tmp/candidate.cubin";

struct HalvesCommand {
  std::string device;  // the halves, as they are to be put there
  std::string host;
  // Ends with 0 where both were compiled and linked to `library`.
  std::vector<std::string> command;
};

// None for programs that SplitCuda leaves to nvcc. `names_nothing`: of C++'s standard library.
std::optional<HalvesCommand> MakeHalvesCommand(const HalvesTools& tools, std::string_view source,
                                               const std::string& architecture, bool names_nothing,
                                               const std::string& library);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_HALVES_COMMAND_H_
