// Stands for a library with kernels for GPUs: sections by the names that nvcc gives them.
namespace {

constexpr int kPageBytes = 4096;
constexpr int kNumPages = 3;

}  // namespace

extern "C" {

__attribute__((section(".nv_fatbin"),
               aligned(kPageBytes))) extern const char kernels[kNumPages * kPageBytes] = "kernels";
__attribute__((section("__nv_relfatbin"),
               aligned(16))) extern const char linked_kernels[kNumPages * kPageBytes] =
    "kernels to be linked";

const char* Kernels() { return kernels; }
const char* LinkedKernels() { return linked_kernels; }
int Answer() { return 42; }
}
