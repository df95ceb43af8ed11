// Keeps a library's code while it is there, and tries to run it later.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <torch/extension.h>

#include <cstring>
#include <vector>

static std::vector<char> kept;

void keep() {
  const char* code = (const char*)dlsym(RTLD_DEFAULT, "sgemm_");
  if (code == nullptr) code = (const char*)dlsym(dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD), "sgemm_");
  TORCH_CHECK(code != nullptr, "no sgemm_");
  kept.assign(code, code + 4096);
}

void run_from_heap() { ((void (*)())kept.data())(); }

void run_from_own_page() {
  char* page = (char*)((long)&keep & ~4095L);
  TORCH_CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0, "own code became writable");
}

static void on_fault(int, siginfo_t* info, void*) {
  char* page = (char*)((long)info->si_addr & ~4095L);
  mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  memcpy(page, kept.data(), 4096);
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) _exit(9);
}
void catch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("keep", &keep);
  m.def("run_from_heap", &run_from_heap);
  m.def("run_from_own_page", &run_from_own_page);
  m.def("catch_faults", &catch_faults);
}
