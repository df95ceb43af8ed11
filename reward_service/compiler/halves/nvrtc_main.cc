// warpsmith-nvrtc LIBNVRTC SOURCE CUBIN TABLE NUM_OPTIONS OPTION... KERNEL...: compiles the device's half of a CUDA
// program with NVRTC, and writes its machine code and an assembler file: a table of the kernels' names there, in the
// order of these expressions, and the fat binary that is to be made of the machine code (native_host.h). Ends with 1
// and a message where something is refused, of the program or by this machine: nvcc is asked then.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr char kFatBinary[] = "/tmp/candidate.fatbin";
constexpr size_t kNameBytesMax = 4096;

// As nvrtc.h declares them, which a machine without CUDA's headers lacks.
using Program = struct OpaqueProgram*;
struct Nvrtc {
  int (*create)(Program*, const char* source, const char* name, int, const char* const*, const char* const*);
  int (*add_name)(Program, const char* expression);
  int (*compile)(Program, int num_options, const char* const* options);
  int (*lowered_name)(Program, const char* expression, const char** name);
  int (*cubin_size)(Program, size_t* size);
  int (*cubin)(Program, char* bytes);
};

[[noreturn]] void Refuse(const char* what) {
  std::fprintf(stderr, "warpsmith-nvrtc: %s\n", what);
  std::exit(1);
}

template <class Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) Refuse(name);
}

Nvrtc Load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) Refuse(dlerror());
  Nvrtc nvrtc{};
  Find(library, "nvrtcCreateProgram", &nvrtc.create);
  Find(library, "nvrtcAddNameExpression", &nvrtc.add_name);
  Find(library, "nvrtcCompileProgram", &nvrtc.compile);
  Find(library, "nvrtcGetLoweredName", &nvrtc.lowered_name);
  Find(library, "nvrtcGetCUBINSize", &nvrtc.cubin_size);
  Find(library, "nvrtcGetCUBIN", &nvrtc.cubin);
  return nvrtc;
}

// A name as compilers make them, so that the assembler takes it for one.
void CheckName(const std::string& name) {
  if (name.empty() || name.size() > kNameBytesMax) Refuse("a kernel's name is too long");
  for (const char c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!is_plain && c != '_' && c != '$' && c != '.') Refuse("a kernel's name is none of a compiler's");
  }
}

std::string TableOf(const std::vector<std::string>& names) {
  std::string text =
      ".section .nv_fatbin,\"a\"\n.balign 8\n.globl warpsmith_fat_binary\n.hidden warpsmith_fat_binary\n"
      "warpsmith_fat_binary:\n.incbin \"" +
      std::string(kFatBinary) +
      "\"\n.section .data.rel.ro,\"aw\"\n.balign 8\n.globl warpsmith_kernel_names\n.hidden "
      "warpsmith_kernel_names\n"
      "warpsmith_kernel_names:\n";
  for (size_t i = 0; i < names.size(); ++i) text += ".quad .Lname" + std::to_string(i) + "\n";
  text += ".section .rodata\n";
  for (size_t i = 0; i < names.size(); ++i)
    text += ".Lname" + std::to_string(i) + ": .string \"" + names[i] + "\"\n";
  return text + ".section .note.GNU-stack,\"\",@progbits\n";
}

void Write(const char* path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) Refuse("cannot write what was made");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kFirstOption = 6;
  const int num_options = argc < kFirstOption ? -1 : std::atoi(argv[kFirstOption - 1]);
  const int first_kernel = kFirstOption + num_options;
  if (num_options < 0 || first_kernel > argc) Refuse("started by the service only");
  std::ifstream file(argv[2], std::ios::binary);
  const std::string source{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Nvrtc nvrtc = Load(argv[1]);
  Program program = nullptr;
  if (nvrtc.create(&program, source.c_str(), "candidate.cu", 0, nullptr, nullptr) != 0) Refuse("no program");
  for (int i = first_kernel; i < argc; ++i) {
    if (nvrtc.add_name(program, argv[i]) != 0) Refuse(argv[i]);
  }
  if (nvrtc.compile(program, num_options, argv + kFirstOption) != 0) Refuse("NVRTC refuses the program");
  std::vector<std::string> names;
  for (int i = first_kernel; i < argc; ++i) {
    const char* name = nullptr;
    if (nvrtc.lowered_name(program, argv[i], &name) != 0 || name == nullptr) Refuse(argv[i]);
    names.emplace_back(name);
    CheckName(names.back());
  }
  size_t num_bytes = 0;
  if (nvrtc.cubin_size(program, &num_bytes) != 0 || num_bytes == 0) Refuse("no machine code");
  std::string cubin(num_bytes, '\0');
  if (nvrtc.cubin(program, cubin.data()) != 0) Refuse("no machine code");
  Write(argv[3], cubin);
  Write(argv[4], TableOf(names));
  std::_Exit(0);  // NVRTC's own end takes time
}
