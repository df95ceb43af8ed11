// A GPU made of the host, for tests without one: CUDA's runtime as far as core/model uses it, and the kernels by their
// references (others: host_gpu_kernels.cc).
// Linked as objects, so that these definitions take the place of the others. Everything has happened when a
// call returns, so streams and races are not tested; a thread that captures (host_graph.h) records its kernels instead.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/distributed/nccl_environment.h"
#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/bfloat16.h"
#include "core/kernels/linear_cuda.h"
#include "core/kernels/paged_attention_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "tests/support/host_gpu_faults.h"
#include "tests/support/host_graph.h"

namespace warpsmith {

// One, where no other file of the test has more.
__attribute__((weak)) int HostGpuCount() { return 1; }

}  // namespace warpsmith

namespace {

constexpr size_t kMemory = size_t{4} << 30;
[[maybe_unused]] const bool kIsDecided = (warpsmith::LeaveMulticastOff(), true);  // before any thread
char g_something;                                                                 // what handles point to

cudaError_t Allocate(void** memory, size_t bytes) {
  if (bytes > kMemory) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

CUresult Granularity(size_t* unit, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *unit = size_t{2} << 20;
  return CUDA_SUCCESS;
}
// Addresses without memory: whoever touches them is stopped.
CUresult ReserveAddresses(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult FreeAddresses(CUdeviceptr address, size_t bytes) {
  return munmap(reinterpret_cast<void*>(address), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
// Memory is a file in memory, and its handle the file's descriptor: so other processes can map it.
CUresult CreateMemory(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                      unsigned long long) {
  if (bytes > kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = memfd_create("host_gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = static_cast<CUmemGenericAllocationHandle>(file);
  return CUDA_SUCCESS;
}
CUresult ReleaseMemory(CUmemGenericAllocationHandle handle) {
  return close(static_cast<int>(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult MapMemory(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                   unsigned long long) {
  struct stat status = {};
  const int file = static_cast<int>(handle);
  if (fstat(file, &status) != 0 || static_cast<size_t>(status.st_size) < bytes)
    return CUDA_ERROR_INVALID_VALUE;
  void* const memory = reinterpret_cast<void*>(address);
  const bool mapped =
      mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  return mapped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult UnmapMemory(CUdeviceptr address, size_t bytes) {
  void* const memory = reinterpret_cast<void*>(address);
  mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
CUresult ExportHandle(void* descriptor, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                      unsigned long long) {
  *static_cast<int*>(descriptor) = dup(static_cast<int>(handle));
  return CUDA_SUCCESS;
}
CUresult ImportHandle(CUmemGenericAllocationHandle* handle, void* descriptor, CUmemAllocationHandleType) {
  const int file = dup(static_cast<int>(reinterpret_cast<intptr_t>(descriptor)));
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return CUDA_ERROR_INVALID_VALUE;
  *handle = static_cast<CUmemGenericAllocationHandle>(file);
  return CUDA_SUCCESS;
}
CUresult SetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }

struct EntryPoint {
  const char* name;
  void* function;
};

float Load(const __nv_bfloat16& stored) {
  uint16_t bits = 0;
  std::memcpy(&bits, &stored, sizeof(bits));
  return warpsmith::FloatOfBfloat16(bits);
}

void Store(float value, __nv_bfloat16& to) {
  const uint16_t bits = warpsmith::Bfloat16Bits(value);
  std::memcpy(static_cast<void*>(&to), &bits, sizeof(bits));
}

// Null where `from` is, so that optional operands stay optional.
struct Floats {
  Floats(const __nv_bfloat16* from, int64_t size)
      : values(from == nullptr ? 0 : size), present(from != nullptr) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = Load(from[i]);
  }
  float* get() { return present ? values.data() : nullptr; }
  void WriteTo(__nv_bfloat16* to) const {
    for (size_t i = 0; i < values.size(); ++i) Store(values[i], to[i]);
  }

  std::vector<float> values;
  bool present;
};

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (warpsmith::HostFaults().driver_is_old) return cudaErrorInsufficientDriver;
  *count = warpsmith::HostGpuCount();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device >= 0 && device < warpsmith::HostGpuCount() ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9
           : attribute == cudaDevAttrL2CacheSize          ? 1 << 20
                                                          : 0;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  warpsmith::AwaitHostGpu();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaMalloc(void** memory, size_t bytes) { return Allocate(memory, bytes); }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) { return Allocate(memory, bytes); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return Allocate(memory, bytes); }
cudaError_t cudaFree(void* memory) {
  warpsmith::AwaitHostGpu();
  if (memory != nullptr) ++warpsmith::HostFaults().num_freed;
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(&g_something);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) {
  return warpsmith::HostFaults().hangs ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(&g_something);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) {
  return warpsmith::HostFaults().hangs ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* argument) {
  if (!warpsmith::HostFaults().hangs) function(argument);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const EntryPoint points[] = {{"cuMemGetAllocationGranularity", reinterpret_cast<void*>(&Granularity)},
                               {"cuMemAddressReserve", reinterpret_cast<void*>(&ReserveAddresses)},
                               {"cuMemAddressFree", reinterpret_cast<void*>(&FreeAddresses)},
                               {"cuMemCreate", reinterpret_cast<void*>(&CreateMemory)},
                               {"cuMemRelease", reinterpret_cast<void*>(&ReleaseMemory)},
                               {"cuMemMap", reinterpret_cast<void*>(&MapMemory)},
                               {"cuMemUnmap", reinterpret_cast<void*>(&UnmapMemory)},
                               {"cuMemSetAccess", reinterpret_cast<void*>(&SetAccess)},
                               {"cuMemExportToShareableHandle", reinterpret_cast<void*>(&ExportHandle)},
                               {"cuMemImportFromShareableHandle", reinterpret_cast<void*>(&ImportHandle)}};
  for (const EntryPoint& point : points) {
    if (std::strcmp(point.name, name) != 0 || warpsmith::HostFaults().lacks_virtual_memory) continue;
    *function = point.function;
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
  }
  *result = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(&g_something);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

}  // extern "C"

namespace warpsmith {

// Refuses what cuBLASLt would: a y that overlaps x, and operands that are not aligned.
template <>
cublasStatus_t LinearPlans::Prepare(const LinearShape& shape, const LinearOperands& operands, CublasWorkspace,
                                    cudaStream_t) {
  for (const void* operand : {static_cast<const void*>(operands.x), static_cast<const void*>(operands.weight),
                              operands.residual, static_cast<const void*>(operands.y)}) {
    if (reinterpret_cast<uintptr_t>(operand) % 16 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (shape.depth % 8 != 0 || shape.columns % 8 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  choices_.emplace(shape, std::vector<Choice>(row_buckets_.size()));
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

void Multiply(const LinearShape& shape, int64_t rows, const LinearOperands& operands) {
  Floats x(operands.x, rows * shape.depth), weight(operands.weight, shape.columns * shape.depth),
      residual(static_cast<const __nv_bfloat16*>(operands.residual), rows * shape.columns);
  std::vector<double> y(rows * shape.columns);
  LinearReference(shape, rows, x.get(), weight.get(), nullptr, residual.get(), y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const auto value = static_cast<float>(y[i]);
    if (shape.output == LinearOutput::kFloat32) {
      static_cast<float*>(operands.y)[i] = value;
    } else {
      Store(value, static_cast<__nv_bfloat16*>(operands.y)[i]);
    }
  }
}

}  // namespace

template <>
cublasStatus_t LinearPlans::Launch(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                   cudaStream_t) const {
  if (IsRecorded([=, this] { return Launch(shape, rows, operands, nullptr); })) return CUBLAS_STATUS_SUCCESS;
  if (!choices_.contains(shape)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (BucketOfRows(rows, row_buckets_) < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (shape.has_residual != (operands.residual != nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  Multiply(shape, rows, operands);
  return CUBLAS_STATUS_SUCCESS;
}

cudaError_t LaunchStreamedLinear(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                 cudaStream_t, KernelStart, NextStart) {
  if (IsRecorded([=] { return LaunchStreamedLinear(shape, rows, operands, nullptr); })) return cudaSuccess;
  if (rows < 1 || shape.depth % 8 != 0 || shape.columns % 8 != 0) return cudaErrorInvalidValue;
  Multiply(shape, rows, operands);
  return cudaSuccess;
}

template <>
cudaError_t LaunchResidualNorm(const ResidualNorm<__nv_bfloat16>& norm, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchResidualNorm(norm, nullptr); })) return cudaSuccess;
  const int64_t size = norm.rows * norm.size;
  Floats x(norm.x, size), delta(norm.delta, norm.num_deltas * size), weight(norm.weight, norm.size);
  Floats y = x;
  ResidualNormReference(
      {norm.rows, norm.size, norm.eps, x.get(), delta.get(), weight.get(), y.get(), norm.num_deltas});
  if (norm.delta != nullptr) x.WriteTo(norm.x);
  y.WriteTo(norm.y);
  return cudaSuccess;
}

template <>
cudaError_t LaunchAttentionInputs(const AttentionInputs<__nv_bfloat16>& inputs, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchAttentionInputs(inputs, nullptr); })) return cudaSuccess;
  const int64_t heads = HeadsOfRow(inputs) * inputs.head_dim, entry = inputs.num_kv_heads * inputs.head_dim;
  const int64_t queries_size = inputs.rows * inputs.num_kv_heads * inputs.group_size * inputs.head_dim;
  const int64_t entries = 1 + *std::max_element(inputs.kv_entries, inputs.kv_entries + inputs.rows);
  Floats qkv(inputs.qkv, inputs.rows * heads), bias(inputs.bias, heads),
      query_norm(inputs.query_norm, inputs.head_dim), key_norm(inputs.key_norm, inputs.head_dim),
      queries(inputs.queries, queries_size), keys(inputs.key_pages, entries * entry),
      values(inputs.value_pages, entries * entry);
  AttentionInputsReference({inputs.rows, inputs.num_kv_heads, inputs.group_size, inputs.head_dim, inputs.eps,
                            qkv.get(), bias.get(), query_norm.get(), key_norm.get(), inputs.cosines,
                            inputs.sines, inputs.positions, inputs.kv_entries, queries.get(), keys.get(),
                            values.get()});
  queries.WriteTo(inputs.queries);
  keys.WriteTo(inputs.key_pages);
  values.WriteTo(inputs.value_pages);
  return cudaSuccess;
}

template <>
cudaError_t LaunchSwiGlu(const SwiGlu<__nv_bfloat16>& swiglu, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchSwiGlu(swiglu, nullptr); })) return cudaSuccess;
  Floats gate_up(swiglu.gate_up, swiglu.rows * 2 * swiglu.size), y(swiglu.y, swiglu.rows * swiglu.size);
  SwiGluReference({swiglu.rows, swiglu.size, gate_up.get(), y.get()});
  y.WriteTo(swiglu.y);
  return cudaSuccess;
}

cudaError_t LaunchStreamedSwiGlu(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                 cudaStream_t stream, KernelStart start, NextStart) {
  if (IsRecorded([=] { return LaunchStreamedSwiGlu(shape, rows, operands, nullptr); })) return cudaSuccess;
  std::vector<__nv_bfloat16> gate_up(rows * shape.columns);
  const LinearOperands product = {operands.x, operands.weight, nullptr, nullptr, gate_up.data()};
  if (const auto error = LaunchStreamedLinear(shape, rows, product, stream, start); error != cudaSuccess)
    return error;
  return LaunchSwiGlu({rows, shape.columns / 2, gate_up.data(), static_cast<__nv_bfloat16*>(operands.y)},
                      stream, start);
}

size_t PagedAttentionWorkspaceBytes(int64_t rows, int64_t num_kv_heads, int64_t group_size, int64_t head_dim,
                                    const PagedAttentionBounds& bounds) {
  return rows * num_kv_heads * group_size * head_dim * (bounds.rows_of_query_max == 1 ? 8 : 4);
}

namespace {

// o of one query head of one row, by the formula of paged_attention.h.
void AttendHead(const PagedAttention<__nv_bfloat16>& attention, int64_t query, int64_t row, int64_t head) {
  const int64_t h = attention.head_dim, kv_head = head / attention.group_size;
  const int64_t at = (row * attention.num_kv_heads * attention.group_size + head) * h;
  std::vector<double> weights, output(h);
  std::vector<int64_t> places;
  for (int64_t p = 0; p <= attention.positions[row]; ++p) {
    const int64_t page = attention.page_indices[attention.page_indptr[query] + p / attention.page_tokens];
    const int64_t entry = page * attention.page_tokens + p % attention.page_tokens;
    places.push_back((entry * attention.num_kv_heads + kv_head) * h);
    double score = 0;
    for (int64_t i = 0; i < h; ++i) {
      score += double{Load(attention.queries[at + i])} * Load(attention.key_pages[places.back() + i]);
    }
    weights.push_back(score * attention.scale);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (size_t p = 0; p < weights.size(); ++p) {
    for (int64_t i = 0; i < h; ++i)
      output[i] += weights[p] / sum * Load(attention.value_pages[places[p] + i]);
  }
  for (int64_t i = 0; i < h; ++i) Store(static_cast<float>(output[i]), attention.output[at + i]);
}

}  // namespace

cudaError_t LaunchPagedAttention(const PagedAttention<__nv_bfloat16>& attention,
                                 const PagedAttentionBounds& bounds, void*, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchPagedAttention(attention, bounds, nullptr, nullptr); }))
    return cudaSuccess;
  for (int64_t query = 0; query < attention.num_queries; ++query) {
    const int64_t begin = attention.row_indptr[query], end = attention.row_indptr[query + 1];
    if (end - begin > bounds.rows_of_query_max) return cudaErrorInvalidValue;
    for (int64_t row = begin; row < end; ++row) {
      if (attention.positions[row] >= bounds.context_tokens_max) return cudaErrorInvalidValue;
      for (int64_t head = 0; head < attention.num_kv_heads * attention.group_size; ++head) {
        AttendHead(attention, query, row, head);
      }
    }
  }
  return cudaSuccess;
}

}  // namespace warpsmith
