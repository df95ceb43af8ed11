// RETURN_IF_ERROR and ASSIGN_OR_RETURN, which the packaged Abseil lacks.
//
//   RETURN_IF_ERROR(writer.Close());
//   ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
#ifndef WARPSMITH_CORE_BASE_STATUS_MACROS_H_
#define WARPSMITH_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define WS_CONCAT_INNER(a, b) a##b
#define WS_CONCAT(a, b) WS_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                             \
  if (absl::Status ws_status = (expression); !ws_status.ok()) { \
    return ws_status;                                           \
  }

#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_IMPL(WS_CONCAT(ws_statusor_, __LINE__), declaration, expression)

#define ASSIGN_OR_RETURN_IMPL(statusor, declaration, expression) \
  auto statusor = (expression);                                  \
  if (!statusor.ok()) return std::move(statusor).status();       \
  declaration = *std::move(statusor)

#endif  // WARPSMITH_CORE_BASE_STATUS_MACROS_H_
