#include "core/base/touch_constants.h"

#include <link.h>

#include <algorithm>

namespace warpsmith {
namespace {

constexpr uintptr_t kPageBytes = 4096;

struct Visit {
  std::string_view prefix;
  int64_t num_pages = 0;
};

int64_t TouchPages(uintptr_t begin, uintptr_t end) {
  int64_t num_pages = 0;
  for (uintptr_t at = begin; at < end; at = at / kPageBytes * kPageBytes + kPageBytes) {
    (void)*reinterpret_cast<const volatile char*>(at);
    ++num_pages;
  }
  return num_pages;
}

int TouchObject(dl_phdr_info* info, size_t /*bytes*/, void* data) {
  auto* visit = static_cast<Visit*>(data);
  std::string_view name = info->dlpi_name;
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  if (name.substr(0, visit->prefix.size()) != visit->prefix) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const bool read_only = segment.p_type == PT_LOAD && segment.p_flags == PF_R;
    if (!read_only && segment.p_type != PT_GNU_RELRO) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    visit->num_pages += TouchPages(begin, begin + segment.p_memsz);
  }
  return 0;
}

}  // namespace

int64_t TouchConstants(std::string_view prefix) {
  Visit visit{prefix};
  dl_iterate_phdr(TouchObject, &visit);
  return visit.num_pages;
}

}  // namespace warpsmith
