#include "warpsmith_facade/values.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "reward_service/facade/handle.h"
#include "warpsmith_facade/functions.h"

namespace warpsmith_facade {

const char* toString(ScalarType type) { return c10::toString(Real(type)); }
bool isFloatingType(ScalarType type) { return c10::isFloatingType(Real(type)); }
size_t elementSize(ScalarType type) { return c10::elementSize(Real(type)); }

Device::Device(const std::string& name) : Device(Wrap(at::Device(name))) {}
std::string Device::str() const { return Real(*this).str(); }

void Fail(const char* function, const char* file, int line, const std::string& message) {
  c10::detail::torchCheckFail(function, file, static_cast<uint32_t>(line), message);
}

void FailUnimplemented(const char* function, const char* file, int line, const std::string& message) {
  throw c10::NotImplementedError({function, file, static_cast<uint32_t>(line)}, message);
}

at::Scalar Real(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::kBool:
      return at::Scalar(value.integer() != 0);
    case Scalar::Kind::kInteger:
      return at::Scalar(value.integer());
    case Scalar::Kind::kReal:
      break;
  }
  return at::Scalar(value.real());
}

std::optional<at::Scalar> Real(const std::optional<Scalar>& value) {
  return value ? std::optional<at::Scalar>(Real(*value)) : std::nullopt;
}

at::TensorOptions Real(const TensorOptions& options) {
  at::TensorOptions real;
  if (options.has_dtype()) real = real.dtype(Real(options.dtype().toScalarType()));
  if (options.has_device()) real = real.device(Real(options.device()));
  if (options.has_memory_format()) real = real.memory_format(Real(options.memory_format()));
  if (options.requires_grad()) real = real.requires_grad(true);
  if (options.pinned_memory()) real = real.pinned_memory(true);
  return real;
}

std::vector<Tensor> Wrap(const std::vector<at::Tensor>& tensors) {
  std::vector<Tensor> wrapped;
  wrapped.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) wrapped.push_back(Wrap(tensor));
  return wrapped;
}

std::vector<at::Tensor> Real(TensorList tensors) {
  std::vector<at::Tensor> real;
  real.reserve(tensors.size());
  for (const Tensor& tensor : tensors) real.push_back(Real(tensor));
  return real;
}

void ParallelFor(int64_t begin, int64_t end, int64_t grain, void (*call)(void*, int64_t, int64_t),
                 void* body) {
  at::parallel_for(begin, end, grain, [=](int64_t first, int64_t last) { call(body, first, last); });
}
int get_num_threads() { return at::get_num_threads(); }

NoGradGuard::NoGradGuard() : was_enabled_(c10::GradMode::is_enabled()) { c10::GradMode::set_enabled(false); }
NoGradGuard::~NoGradGuard() { c10::GradMode::set_enabled(was_enabled_); }

}  // namespace warpsmith_facade
