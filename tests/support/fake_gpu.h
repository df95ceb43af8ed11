// The driver of fake_cuda/ in a test's own process.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_GPU_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_GPU_H_

#include <filesystem>
#include <string>

namespace warpsmith {

// Where the fake libcuda.so.1 and libnvidia-ml.so.1 lie: for LD_LIBRARY_PATH of other processes.
std::filesystem::path FakeCudaFolder();

// Makes `folder`/share/warpsmith, what `share` has, for a lane on the fake GPU: there the jails' Python side of
// a GPU is fake_cuda/fake_gpu_tensors.py. Returns it.
std::filesystem::path ShareWithFakeGpu(const std::filesystem::path& share,
                                       const std::filesystem::path& folder);

// The handle, in hexadecimal, of an allocation that is what this descriptor has.
std::string HandleOf(int fd);

// From its making to its end the driver does what `script` says (fake_cuda/fake_script.h); the first one of a
// process has the driver loaded.
class FakeGpu {
 public:
  explicit FakeGpu(const std::string& script = "");
  ~FakeGpu();
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  void Say(const std::string& script);  // from now on
  std::string script() const;           // as far as it is still to come

 private:
  std::filesystem::path file_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_GPU_H_
