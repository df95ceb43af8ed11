#include "reward_service/compiler/halves/halves_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "reward_service/compiler/halves/cuda_halves.h"

namespace warpsmith {
namespace {

// The flag of kNoSpecialFunctions, without which <cmath> is twice as long.
constexpr char kShortMathematics[] = "-D_GLIBCXX_BITS_SPECFUN_H=1";

// Tells CUDA's runtime of the kernels before anything of the program runs.
std::string Registration(const std::vector<std::string>& kernels) {
  std::string text =
      "\nnamespace {\n__attribute__((section(\".nvFatBinSegment\"))) ::warpsmith::FatBinary "
      "warpsmith_wrapper;\n"
      "void** warpsmith_handle;\n"
      "__attribute__((constructor(101))) void WarpsmithRegister() {\n"
      "  warpsmith_handle = __cudaRegisterFatBinary(&warpsmith_wrapper);\n"
      "  const char* const stubs[] = {";
  for (const std::string& kernel : kernels) absl::StrAppend(&text, "::warpsmith::AddressOf(", kernel, "), ");
  return text +
         "};\n  for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); ++i)\n"
         "    __cudaRegisterFunction(warpsmith_handle, stubs[i], (char*)warpsmith_kernel_names[i],\n"
         "                           warpsmith_kernel_names[i], -1, 0, 0, 0, 0, 0);\n"
         "  __cudaRegisterFatBinaryEnd(warpsmith_handle);\n}\n"
         "__attribute__((destructor(101))) void WarpsmithForget() { "
         "__cudaUnregisterFatBinary(warpsmith_handle); }\n"
         "}\n";
}

std::string Quoted(const std::filesystem::path& path) { return absl::StrCat("'", path.string(), "'"); }

std::vector<std::string> NvrtcOptions(const HalvesTools& tools, const std::string& architecture) {
  std::vector<std::string> options = {
      absl::StrCat("-arch=", architecture), "-std=c++17",
      absl::StrCat("--pre-include=", (tools.header_directory / "native_device.h").string()),
      absl::StrCat("-I", tools.header_directory.string())};
  for (const std::filesystem::path& folder : tools.include_folders)
    options.push_back(absl::StrCat("-I", folder.string()));
  return options;
}

std::string HostCommand(const HalvesTools& tools, bool names_nothing) {
  std::vector<std::string> words = {tools.host_compiler,
                                    "-std=c++17",
                                    "-O3",
                                    "-march=native",
                                    "-fPIC",
                                    "-w",
                                    "-include",
                                    Quoted(tools.header_directory / "native_host.h")};
  if (names_nothing) {
    words.push_back(kShortMathematics);
  } else {
    words.insert(words.end(), {"-include", "functional"});  // as nvcc does for lambdas of the device
  }
  for (const std::string& flag : tools.host_flags) words.push_back(Quoted(flag));
  words.insert(words.end(), {"-c", kHostHalfFile, "-o", "/tmp/host.o"});
  return absl::StrJoin(words, " ");
}

std::string DeviceCommand(const HalvesTools& tools, const std::string& architecture) {
  return absl::StrCat(
      "LD_LIBRARY_PATH=", Quoted(tools.nvrtc.parent_path()), " \"$@\" && ", Quoted(tools.fatbinary),
      " --create=/tmp/candidate.fatbin -64 --compress-mode=none --image3=kind=elf,sm=",
      architecture.substr(architecture.find('_') + 1), ",file=", std::string(kHalvesCubinFile));
}

std::string LinkCommand(const HalvesTools& tools, const std::string& library) {
  return absl::StrCat(tools.host_compiler, " -shared ", absl::StrJoin(tools.link_flags, " "),
                      " /tmp/host.o /tmp/table.s -Wl,--no-as-needed -L", Quoted(tools.stub_directory),
                      " -lcudart -o ", library);
}

}  // namespace

std::optional<HalvesCommand> MakeHalvesCommand(const HalvesTools& tools, std::string_view source,
                                               const std::string& architecture, bool names_nothing,
                                               const std::string& library) {
  std::optional<CudaHalves> halves = SplitCuda(source);
  if (!halves) return std::nullopt;
  const std::string script =
      absl::StrCat("{ ", DeviceCommand(tools, architecture), "; } &\n", HostCommand(tools, names_nothing),
                   " || exit\nwait $! || exit\n", LinkCommand(tools, library), "\n");
  const std::vector<std::string> options = NvrtcOptions(tools, architecture);
  HalvesCommand made{
      .device = std::move(halves->device),
      .host = absl::StrCat(halves->host, Registration(halves->kernels)),
      .command = {"/bin/sh", "-c", script, "sh", tools.program.string(), tools.nvrtc.string(),
                  kDeviceHalfFile, kHalvesCubinFile, "/tmp/table.s", absl::StrCat(options.size())}};
  made.command.insert(made.command.end(), options.begin(), options.end());
  made.command.insert(made.command.end(), halves->kernels.begin(), halves->kernels.end());
  return made;
}

}  // namespace warpsmith
