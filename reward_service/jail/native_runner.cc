#include "reward_service/jail/native_runner.h"

#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/huge_pages.h"
#include "core/base/status_macros.h"
#include "core/base/touch_constants.h"
#include "reward_service/jail/enter_jail.h"
#include "reward_service/jail/launch_messages.h"
#include "reward_service/jail/launch_trace.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"
#include "reward_service/jail/start_page.h"
#include "reward_service/sandbox/confinement.h"

namespace warpsmith {
namespace {

using EntryPoint = int (*)(const DLTensor* const*, const DLTensor* const*, DLTensor* const*);
using GpuEntryPoint = int (*)(const DLTensor* const*, const DLTensor* const*, DLTensor* const*, cuda::Stream);

constexpr int kNumSlots = jail::Run::slot.high + 1;
constexpr char kLibraryName[] = "candidate.so";

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// The tensors of one kind in one slot, over memory that outlives them.
class TensorList {
 public:
  TensorList(const nlohmann::json& specs, char* base, DLDevice device) : device_(device) {
    shapes_.reserve(specs.size());
    strides_.reserve(specs.size());
    for (const nlohmann::json& spec : specs) Add(spec, base);
    for (DLTensor& tensor : tensors_) pointers_.push_back(&tensor);
  }

  DLTensor* const* pointers() { return pointers_.data(); }

 private:
  void Add(const nlohmann::json& spec, char* base) {
    using oracle::Tensor;
    shapes_.push_back(spec.at(Tensor::shape.name).get<std::vector<int64_t>>());
    DLTensor tensor{};
    tensor.data = base + Read(spec, Tensor::offset);
    tensor.device = device_;
    tensor.ndim = static_cast<int32_t>(shapes_.back().size());
    tensor.dtype = {static_cast<uint8_t>(Read(spec, Tensor::code)),
                    static_cast<uint8_t>(Read(spec, Tensor::bits)), 1};
    tensor.shape = shapes_.back().data();
    strides_.push_back(spec.value(Tensor::strides.name, std::vector<int64_t>()));
    tensor.strides = strides_.back().empty() ? nullptr : strides_.back().data();  // null: row-major, no gaps
    tensors_.push_back(tensor);
  }

  DLDevice device_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<DLTensor> tensors_;
  std::vector<DLTensor*> pointers_;
};

struct CallTensors {
  TensorList inputs;
  TensorList parameters;
  TensorList outputs;
};

// Maps the first `num_bytes` of a descriptor, every page present, with a page on either side that faults.
absl::StatusOr<char*> MapBuffer(int fd, int64_t num_bytes, int protection, const char* name) {
  char* start = ReserveAligned(num_bytes);
  if (start == nullptr) return Failed("reserve a buffer");
  if (num_bytes > 0 && mmap(start, static_cast<size_t>(num_bytes), protection,
                            MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
    return Failed("map a buffer");
  }
  NameBuffer(name, start, num_bytes);
  return start;
}

// A file of its own, for the loader wants a path and there is no /proc here. Closes both descriptors.
absl::StatusOr<void*> LoadCandidate(UniqueFd library, UniqueFd folder) {
  struct stat info;
  if (fstat(library.get(), &info) != 0) return Failed("fstat");
  UniqueFd copy(openat(folder.get(), kLibraryName, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0500));
  if (!copy.valid()) return Failed(kLibraryName);
  off_t offset = 0;
  while (offset < info.st_size) {
    const ssize_t sent =
        sendfile(copy.get(), library.get(), &offset, static_cast<size_t>(info.st_size - offset));
    if (sent <= 0) return Failed("copy the library");
  }
  copy.Reset();
  library.Reset();
  folder.Reset();
  void* handle = dlopen(absl::StrCat(kLibraryFolder, "/", kLibraryName).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("the library does not load: ", dlerror()));
  void* symbol = dlsym(handle, "run");
  if (symbol == nullptr)
    return absl::InvalidArgumentError("the library has no function `run` with C linkage");
  TouchConstants("");
  return symbol;
}

class NativeJail {
 public:
  NativeJail(UniqueFd libraries, const cuda::GpuContext* gpu) : libraries_(std::move(libraries)), gpu_(gpu) {}

  absl::Status Load(Packet packet) {
    using jail::Begin;
    const size_t num_pages = gpu_ == nullptr ? 0 : 1;
    if (packet.descriptors.size() != 2 + kNumSlots + num_pages)
      return absl::InternalError("wrong number of descriptors");
    const DLDevice device = {gpu_ == nullptr ? kDLCPU : kDLCUDA, 0};
    const int64_t num_rooms = Read(packet.fields, Begin::num_rooms);
    const int64_t input_bytes = Read(packet.fields, Begin::input_bytes);
    const int64_t output_bytes = Read(packet.fields, Begin::output_bytes);
    for (size_t slot = 0; slot < kNumSlots; ++slot) {
      ASSIGN_OR_RETURN(char* inputs, Map(packet.descriptors[1].get(), num_rooms * input_bytes, Use::kInput));
      ASSIGN_OR_RETURN(char* outputs,
                       Map(packet.descriptors[2 + slot].get(), num_rooms * output_bytes, Use::kOutput));
      for (int64_t room = 0; room < num_rooms; ++room) {
        char* const inputs_here = inputs + room * input_bytes;
        char* const outputs_here = outputs + room * output_bytes;
        slots_[slot].push_back({TensorList(packet.fields.at(Begin::inputs.name), inputs_here, device),
                                TensorList(packet.fields.at(Begin::parameters.name), inputs_here, device),
                                TensorList(packet.fields.at(Begin::outputs.name), outputs_here, device)});
      }
    }
    if (gpu_ != nullptr) {
      RETURN_IF_ERROR(gpu_->driver().Check(
          gpu_->driver().api().cuStreamCreate(&stream_, cuda::kNonBlockingStream), "cuStreamCreate"));
      ASSIGN_OR_RETURN(own_memory_, cuda::GpuMemory::Create(gpu_, 1));
      RETURN_IF_ERROR(MapStartPage(packet.descriptors.back().get()));
    }
    UniqueFd library = std::move(packet.descriptors[0]);
    packet.descriptors.clear();
    // Read by OpenMP's library when the candidate brings it along.
    const int64_t num_threads = Read(packet.fields, Begin::num_threads);
    setenv("OMP_NUM_THREADS", absl::StrCat(num_threads).c_str(), /*overwrite=*/1);
    // So that threads start together, or they would not meet: after the call the referee stops them anyway.
    if (num_threads > 1) setenv("OMP_WAIT_POLICY", "active", /*overwrite=*/1);
    ASSIGN_OR_RETURN(run_, LoadCandidate(std::move(library), std::move(libraries_)));
    return absl::OkStatus();
  }

  // A call in each room. The first that returns another number than 0 is the last.
  nlohmann::json Run(const nlohmann::json& message) {
    std::vector<CallTensors>& of_slot = slots_[static_cast<size_t>(Read(message, jail::Run::slot))];
    const auto number = static_cast<uint32_t>(Read(message, jail::Run::number));
    const std::vector<size_t> rooms =
        number > 0 ? AwaitStart(number) : message.at(jail::Run::rooms.name).get<std::vector<size_t>>();
    int result = 0;
    absl::Status status = TakeTurn();
    for (const size_t room : rooms) {
      if (result != 0 || !status.ok()) break;
      result = Call(of_slot.at(room));
      if (gpu_ != nullptr) status = gpu_->Separate();  // so that no two calls overlap
    }
    if (status.ok() && gpu_ != nullptr) status = gpu_->Synchronise();
    if (status.ok() && number > 0) start_page_->done.store(number, std::memory_order_release);
    if (status.ok()) return Make<jail::Done>({{jail::Done::result, result}});
    return Make<jail::Failed>({{jail::Failed::error, absl::StrCat("on the GPU: ", status.message())}});
  }

  // One more call, and what it launches.
  nlohmann::json Profile(int64_t slot, int64_t room) {
    const absl::StatusOr<Launches> launches =
        Trace(slots_[static_cast<size_t>(slot)].at(static_cast<size_t>(room)));
    if (launches.ok()) return launches->ToMessage();
    return Make<jail::Failed>({{jail::Failed::error, std::string(launches.status().message())}});
  }

  bool ready() const { return run_ != nullptr; }

 private:
  enum class Use { kInput, kOutput };

  int Call(CallTensors& tensors) {
    const auto inputs = tensors.inputs.pointers(), parameters = tensors.parameters.pointers();
    const auto outputs = tensors.outputs.pointers();
    if (gpu_ == nullptr) return reinterpret_cast<EntryPoint>(run_)(inputs, parameters, outputs);
    return reinterpret_cast<GpuEntryPoint>(run_)(inputs, parameters, outputs, stream_);
  }

  absl::Status MapStartPage(int fd) {
    void* const page =
        mmap(nullptr, kStartPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (page == MAP_FAILED) return Failed("map the start page");
    start_page_ = static_cast<StartPage*>(page);
    return absl::OkStatus();
  }

  // Returns the rooms of the run when it begins. The referee may have the same core.
  std::vector<size_t> AwaitStart(uint32_t number) {
    start_page_->ready.store(number, std::memory_order_release);
    while (start_page_->go.load(std::memory_order_acquire) != number) sched_yield();
    const size_t num_calls = std::min<size_t>(start_page_->num_calls, std::size(start_page_->rooms));
    return {start_page_->rooms, start_page_->rooms + num_calls};
  }

  // Writes something on the GPU, before the program does: a GPU takes 120 us to change hands, and what a first launch
  // costs its process hides behind that. Calls that do nothing have their turn, too, which is taken off all others.
  absl::Status TakeTurn() {
    if (gpu_ == nullptr) return absl::OkStatus();
    const cuda::Driver& driver = gpu_->driver();
    return driver.Check(driver.api().cuMemsetD8Async(own_memory_->address(), 0, 1, stream_),
                        "cuMemsetD8Async");
  }

  absl::StatusOr<Launches> Trace(CallTensors& tensors) {
    if (gpu_ == nullptr) return absl::FailedPreconditionError("there is no GPU");
    RETURN_IF_ERROR(BeginTrace());
    const int result = Call(tensors);
    RETURN_IF_ERROR(gpu_->Synchronise());
    if (result != 0) return absl::InternalError(absl::StrCat("run() returned ", result));
    return EndTrace();
  }

  absl::StatusOr<char*> Map(int fd, int64_t num_bytes, Use use) {
    if (gpu_ == nullptr) {
      return use == Use::kInput ? MapBuffer(fd, num_bytes, PROT_READ, jail::Crash::kInput)
                                : MapBuffer(fd, num_bytes, PROT_READ | PROT_WRITE, jail::Crash::kOutput);
    }
    const cuda::Access access = use == Use::kInput ? cuda::Access::kRead : cuda::Access::kReadWrite;
    ASSIGN_OR_RETURN(auto memory, cuda::GpuMemory::Import(gpu_, fd, num_bytes, access));
    gpu_memory_.push_back(std::move(memory));
    return reinterpret_cast<char*>(gpu_memory_.back()->address());
  }

  UniqueFd libraries_;
  const cuda::GpuContext* const gpu_;
  cuda::Stream stream_ = nullptr;
  std::unique_ptr<cuda::GpuMemory> own_memory_;
  StartPage* start_page_ = nullptr;  // with a GPU, for good
  std::vector<std::unique_ptr<cuda::GpuMemory>> gpu_memory_;
  std::array<std::vector<CallTensors>, kNumSlots> slots_;
  void* run_ = nullptr;  // an EntryPoint, or with a GPU a GpuEntryPoint
};

nlohmann::json Obey(NativeJail& jail, Packet packet) {
  if (Is<jail::Run>(packet.fields) && jail.ready()) return jail.Run(packet.fields);
  if (Is<jail::Profile>(packet.fields) && jail.ready())
    return jail.Profile(Read(packet.fields, jail::Profile::slot), Read(packet.fields, jail::Profile::room));
  const absl::Status status = jail.Load(std::move(packet));
  if (status.ok()) return Make<jail::Ready>();
  return Make<jail::Failed>({{jail::Failed::error, std::string(status.message())}});
}

}  // namespace

int RunNativeJail(int socket, UniqueFd libraries, const cuda::GpuContext* gpu) {
  ReportCrashes(socket);
  NativeJail jail(std::move(libraries), gpu);
  for (;;) {
    absl::StatusOr<Packet> packet = ReceivePacket(socket);
    if (!packet.ok()) return packet.status().code() == absl::StatusCode::kUnavailable ? 0 : 1;
    if (!SendPacket(socket, Obey(jail, *std::move(packet))).ok()) return 1;
  }
}

}  // namespace warpsmith
