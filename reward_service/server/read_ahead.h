// Files that will be needed soon, read into the kernel's cache meanwhile.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_READ_AHEAD_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_READ_AHEAD_H_

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace warpsmith {

// The libraries of Torch whose code zygotes run when they find out which of it is permitted: page by page, in an order
// that no disk foresees.
std::vector<std::filesystem::path> TorchLibraries(const std::filesystem::path& torch_dir);

// Asks the kernel for them on a thread of its own, one after the other. What is there already costs next to nothing;
// what is missing is left out.
class ReadAhead {
 public:
  explicit ReadAhead(std::vector<std::filesystem::path> files);
  ~ReadAhead();  // soon, however far it has come
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

 private:
  void Read(const std::filesystem::path& file) const;

  const std::vector<std::filesystem::path> files_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_READ_AHEAD_H_
