#include "core/model/training/run_torch.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <exception>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace warpsmith {

absl::Status RunTorch(const char* what, bool keeps_graph, absl::FunctionRef<void()> work) {
  try {
    const c10::AutoGradMode mode(keeps_graph);
    work();
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": ", Escape(error.what(), 512)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, " failed in LibTorch: ", Escape(error.what(), 2048)));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
