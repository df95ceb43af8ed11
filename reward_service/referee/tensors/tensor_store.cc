#include "reward_service/referee/tensors/tensor_store.h"

#include <cstring>
#include <utility>

#include "core/base/status_macros.h"
#include "reward_service/jail/shared_buffer.h"
#include "reward_service/referee/tensors/uncached_copy.h"

namespace warpsmith {
namespace {

class HostMemory : public TensorMemory {
 public:
  explicit HostMemory(std::unique_ptr<SharedBuffer> buffer) : buffer_(std::move(buffer)) {}

  int64_t num_bytes() const override { return buffer_->num_bytes(); }
  void FillAll(unsigned char value) override { buffer_->Fill(value); }
  void Fill(unsigned char value, int64_t offset, int64_t num_bytes) override {
    FillUncached(buffer_->data() + offset, value, static_cast<size_t>(num_bytes));
  }
  void Write(const char* from, int64_t offset, int64_t num_bytes) override {
    CopyUncached(buffer_->data() + offset, from, static_cast<size_t>(num_bytes));
  }
  void Write(const OwnTensors& from, int64_t from_offset, int64_t offset, int64_t num_bytes) override {
    Write(from.get() + from_offset, offset, num_bytes);
  }
  bool IsSame(const OwnTensors& as, int64_t as_offset, int64_t offset, int64_t num_bytes) override {
    return std::memcmp(buffer_->data() + offset, as.get() + as_offset, static_cast<size_t>(num_bytes)) == 0;
  }
  const char* Read(int64_t offset, int64_t) override { return buffer_->data() + offset; }
  int fd() const override { return buffer_->fd(); }
  int read_only_fd() const override { return buffer_->read_only_fd(); }

 private:
  const std::unique_ptr<SharedBuffer> buffer_;
};

class MemoryFiles : public TensorStore {
 public:
  absl::StatusOr<std::unique_ptr<TensorMemory>> Make(int64_t num_bytes) override {
    ASSIGN_OR_RETURN(auto buffer, SharedBuffer::Create(num_bytes));
    return std::make_unique<HostMemory>(std::move(buffer));
  }
  absl::StatusOr<OwnTensors> Keep(TensorMemory& memory, int64_t offset, int64_t num_bytes, KeptIn) override {
    std::unique_ptr<char[]> copy(
        new char[static_cast<size_t>(num_bytes)]);  // make_unique would write it twice
    std::memcpy(copy.get(), memory.Read(offset, num_bytes), static_cast<size_t>(num_bytes));
    return copy;
  }
  bool on_gpu() const override { return false; }
  absl::Status ReadForeign(std::string_view, int64_t, int64_t, char*) override {
    return absl::UnimplementedError("memory of the host has no handle");
  }
  absl::StatusOr<Comparison> CompareInPlace(const ExpectedOutput&, TensorMemory&, int64_t) override {
    return absl::UnimplementedError("outputs are compared on the host");
  }
  absl::StatusOr<Comparison> CompareForeign(const ExpectedOutput&, const ForeignPlace&) override {
    return absl::UnimplementedError("memory of the host has no handle");
  }
  // What is stopped does nothing.
  absl::StatusOr<double> AwaitDone(double) override { return 0.0; }
  void MakeCold() override {}  // it writes past the caches
  absl::Status Health() override { return absl::OkStatus(); }
};

}  // namespace

TensorStore& HostStore() {
  static auto* const store = new MemoryFiles;
  return *store;
}

}  // namespace warpsmith
