#include "reward_service/measure/request_json.h"

#include <cctype>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"

namespace warpsmith {

namespace {

using jail::Extension;

absl::StatusOr<std::vector<std::string>> Texts(const nlohmann::json& fields, const ListField& field) {
  std::vector<std::string> texts;
  const nlohmann::json* const found = Find(fields, field);
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("load_inline: ", field.name, " is no list of at most ", field.num_max));
  }
  for (const nlohmann::json& text : *found) {
    if (!text.is_string())
      return absl::InvalidArgumentError(absl::StrCat("load_inline: ", field.name, " holds no text"));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

bool IsIdentifier(const std::string& name) {
  if (name.empty() || name.size() > Extension::kNameBytesMax ||
      std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

absl::StatusOr<ExtensionRecord> ReadExtension(const nlohmann::json& fields) {
  ExtensionRecord record;
  const nlohmann::json* const name = Find(fields, Extension::name);
  if (name == nullptr || !name->is_string()) return absl::InvalidArgumentError("load_inline: no name");
  record.name = name->get<std::string>();
  if (!IsIdentifier(record.name)) return absl::InvalidArgumentError("load_inline: the name is no identifier");
  ASSIGN_OR_RETURN(record.cpp_sources, Texts(fields, Extension::cpp_sources));
  ASSIGN_OR_RETURN(record.cuda_sources, Texts(fields, Extension::cuda_sources));
  ASSIGN_OR_RETURN(record.functions, Texts(fields, Extension::functions));
  ASSIGN_OR_RETURN(record.extra_cflags, Texts(fields, Extension::extra_cflags));
  ASSIGN_OR_RETURN(record.extra_cuda_cflags, Texts(fields, Extension::extra_cuda_cflags));
  ASSIGN_OR_RETURN(record.extra_ldflags, Texts(fields, Extension::extra_ldflags));
  record.with_cuda = Read(fields, Extension::with_cuda);
  record.kernels = Read(fields, Extension::kernels);
  return record;
}

}  // namespace

absl::StatusOr<std::vector<ExtensionRecord>> ExtensionsFromJson(const nlohmann::json& list,
                                                                bool own_kernels) {
  constexpr size_t kExtensionsMax = service::Recorded::kExtensionsMax;
  if (!list.is_array() || list.size() > kExtensionsMax) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kExtensionsMax, " calls of load_inline"));
  }
  std::vector<ExtensionRecord> records;
  for (const nlohmann::json& fields : list) {
    ASSIGN_OR_RETURN(ExtensionRecord record, ReadExtension(fields));
    if (!record.kernels.empty() && !own_kernels) continue;  // made up: it was not asked for any
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace warpsmith
