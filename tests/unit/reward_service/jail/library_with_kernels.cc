// Stands for a library with kernels for GPUs: sections by the names that nvcc gives them, and others among its data.
namespace {

constexpr int kPageBytes = 4096;
constexpr int kNumPages = 3;

}  // namespace

extern "C" {

__attribute__((section(".nv_fatbin"),
               aligned(kPageBytes))) extern const char kernels[kNumPages * kPageBytes] = "kernels";
__attribute__((section("__nv_relfatbin"),
               aligned(16))) extern const char linked_kernels[kNumPages * kPageBytes + 16] =
    "kernels to be linked";
__attribute__((section(".ldata"),
               aligned(kPageBytes))) extern const char other_kernels[kNumPages * kPageBytes] =
    "kernels among data";

const char* Kernels() { return kernels; }
const char* LinkedKernels() { return linked_kernels; }
const char* OtherKernels() { return other_kernels; }
int Answer() { return 42; }
}
