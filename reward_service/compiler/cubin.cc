#include "reward_service/compiler/cubin.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr uint16_t kCudaMachine = 190;
constexpr uint8_t kAbiVersion = 8;          // of CUDA 13: says where e_flags has the architecture
constexpr uint8_t kEntryMask = 0x10;        // of a symbol's st_other: a kernel
constexpr int kReservedSharedBytes = 1024;  // at the begin of a block's shared memory, since sm_90
constexpr size_t kSymbolBytesMax = 4096;

// .nv.info is a list of {form, attribute, two bytes}. Behind form 4 follow as many bytes as the two say;
// those of these attributes are a symbol's index and a figure.
constexpr uint8_t kSizedForm = 4;
constexpr uint8_t kFrameBytes = 0x11;
constexpr uint8_t kRegisters = 0x2f;

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("not a cubin: ", what));
}

// The caller has checked that it lies within `bytes`.
template <typename T>
T Copy(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

absl::StatusOr<std::string_view> Part(std::string_view bytes, uint64_t offset, uint64_t size,
                                      const char* what) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return Malformed(absl::StrCat(what, " lies beyond its end"));
  }
  return bytes.substr(offset, size);
}

absl::StatusOr<std::string_view> TextAt(std::string_view texts, uint64_t offset) {
  if (offset >= texts.size()) return Malformed("a name lies beyond its table");
  const std::string_view text = texts.substr(offset, kSymbolBytesMax);
  return text.substr(0, text.find('\0'));
}

absl::StatusOr<int32_t> Figure(uint64_t value, const char* what) {
  if (value > std::numeric_limits<int32_t>::max()) {
    return Malformed(absl::StrCat(what, " cannot be ", value));
  }
  return static_cast<int32_t>(value);
}

struct Section {
  std::string_view name;
  std::string_view data;  // empty for memory without contents
  Elf64_Shdr header;
};

struct Resources {
  uint32_t registers = 0;
  uint32_t frame_bytes = 0;
};

absl::StatusOr<Elf64_Ehdr> ReadHeader(std::string_view bytes) {
  if (bytes.size() > kCubinBytesMax) return Malformed(absl::StrCat(bytes.size(), " bytes are too many"));
  if (bytes.size() < sizeof(Elf64_Ehdr)) return Malformed("it has no ELF header");
  const auto header = Copy<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Malformed("it is no ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Malformed("it is not of 64 bits, little-endian");
  }
  if (header.e_machine != kCudaMachine) {
    return Malformed(absl::StrCat("its machine is ", header.e_machine, ", CUDA's is ", kCudaMachine));
  }
  if (header.e_ident[EI_ABIVERSION] != kAbiVersion) {
    return Malformed(
        absl::StrCat("its ABI version is ", header.e_ident[EI_ABIVERSION], ", CUDA 13 has ", kAbiVersion));
  }
  return header;
}

absl::StatusOr<std::vector<Section>> ReadSections(std::string_view bytes, const Elf64_Ehdr& header) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return Malformed("its sections have another form");
  ASSIGN_OR_RETURN(
      const std::string_view table,
      Part(bytes, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), "its table of sections"));
  std::vector<Section> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) {
    Section& section = sections[i];
    section.header = Copy<Elf64_Shdr>(table, i * sizeof(Elf64_Shdr));
    if (section.header.sh_type == SHT_NOBITS || section.header.sh_type == SHT_NULL) continue;
    ASSIGN_OR_RETURN(section.data,
                     Part(bytes, section.header.sh_offset, section.header.sh_size, "a section"));
  }
  if (header.e_shstrndx >= sections.size()) return Malformed("its sections have no names");
  const std::string_view names = sections[header.e_shstrndx].data;
  for (Section& section : sections) {
    ASSIGN_OR_RETURN(section.name, TextAt(names, section.header.sh_name));
  }
  return sections;
}

// By symbol.
absl::StatusOr<std::vector<Resources>> ReadResources(std::string_view info, size_t num_symbols) {
  std::vector<Resources> resources(num_symbols);
  while (!info.empty()) {
    if (info.size() < 4) return Malformed("its .nv.info ends early");
    const auto form = static_cast<uint8_t>(info[0]), attribute = static_cast<uint8_t>(info[1]);
    const auto size = Copy<uint16_t>(info, 2);
    info.remove_prefix(4);
    if (form != kSizedForm) continue;
    if (size > info.size()) return Malformed("its .nv.info ends early");
    if (attribute == kFrameBytes || attribute == kRegisters) {
      if (size < 8) return Malformed("its .nv.info has a figure of no symbol");
      const auto symbol = Copy<uint32_t>(info, 0), figure = Copy<uint32_t>(info, 4);
      if (symbol >= num_symbols) return Malformed("its .nv.info speaks of a symbol that it lacks");
      (attribute == kRegisters ? resources[symbol].registers : resources[symbol].frame_bytes) = figure;
    }
    info.remove_prefix(size);
  }
  return resources;
}

// Of the section that holds a kernel's code.
absl::StatusOr<int32_t> StaticSharedBytes(const std::vector<Section>& sections, size_t code_section,
                                          int architecture) {
  uint64_t num_bytes = 0;
  for (const Section& section : sections) {
    if (section.header.sh_info == code_section && section.name.starts_with(".nv.shared.")) {
      num_bytes = section.header.sh_size;
    }
  }
  if (architecture >= 90 && num_bytes >= kReservedSharedBytes) num_bytes -= kReservedSharedBytes;
  return Figure(num_bytes, "shared memory");
}

absl::StatusOr<CubinKernel> ReadKernel(const std::vector<Section>& sections, const Elf64_Sym& symbol,
                                       std::string_view name, const Resources& resources, int architecture) {
  const Section& section = sections[symbol.st_shndx];
  if (!section.name.starts_with(".text.")) return Malformed("a kernel lies in no section of code");
  if (section.data.size() % kInstructionBytes != 0) return Malformed("code ends within an instruction");
  CubinKernel kernel;
  kernel.name = KernelName(name);
  ASSIGN_OR_RETURN(kernel.registers, Figure(resources.registers, "a number of registers"));
  ASSIGN_OR_RETURN(kernel.stack_bytes, Figure(resources.frame_bytes, "a stack"));
  ASSIGN_OR_RETURN(kernel.static_shared_bytes, StaticSharedBytes(sections, symbol.st_shndx, architecture));
  kernel.instructions = CountInstructions(section.data, architecture);
  return kernel;
}

const Section* Find(const std::vector<Section>& sections, uint32_t type, std::string_view name) {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const Section& section) {
    return section.header.sh_type == type && section.name == name;
  });
  return found == sections.end() ? nullptr : &*found;
}

// Whether the name may grow by repetition: each reference back to a part of it can double it, each
// expansion of a parameter pack repeats what it has.
bool MayGrow(std::string_view symbol) {
  constexpr size_t kBytesMax = 1024;
  constexpr int kReferencesMax = 12;
  if (symbol.size() > kBytesMax) return true;
  int num_references = 0;
  for (size_t i = 0; i + 1 < symbol.size(); ++i) {
    if (symbol.substr(i, 2) == "Dp" || symbol.substr(i, 2) == "sp") return true;
    if (symbol[i] != 'S' && symbol[i] != 'T') continue;
    const size_t end = symbol.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    if (end != std::string_view::npos && symbol[end] == '_') ++num_references;
  }
  return num_references > kReferencesMax;
}

// "a::b<...>" of _ZN1a1bI and whatever follows; `symbol` itself where that is not its form.
std::string Identifiers(std::string_view symbol) {
  std::string name;
  std::string_view rest = symbol.substr(2);
  while (!rest.empty() && (rest[0] == 'N' || rest[0] == 'L' || rest[0] == 'K')) rest.remove_prefix(1);
  while (!rest.empty() && absl::ascii_isdigit(rest[0])) {
    size_t num_bytes = 0;
    for (; !rest.empty() && absl::ascii_isdigit(rest[0]); rest.remove_prefix(1)) {
      num_bytes = std::min(num_bytes * 10 + (rest[0] - '0'), kSymbolBytesMax);
    }
    if (num_bytes > rest.size()) return std::string(symbol);
    const std::string_view part = rest.substr(0, num_bytes);
    if (!name.empty()) name += "::";
    name += part.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : part;
    rest.remove_prefix(num_bytes);
  }
  if (name.empty()) return std::string(symbol);
  return !rest.empty() && rest[0] == 'I' ? name + "<...>" : name;
}

// Without the parameters at its end and the return type of a template.
std::string_view WithoutSignature(std::string_view name) {
  constexpr std::string_view kResult = "void ";
  if (name.starts_with(kResult)) name.remove_prefix(kResult.size());
  if (name.empty() || name.back() != ')') return name;
  int depth = 0;
  for (size_t i = name.size(); i-- > 1;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string Demangled(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return std::string(symbol);
  if (MayGrow(symbol)) return Identifiers(symbol);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(WithoutSignature(text.get())) : std::string(symbol);
}

}  // namespace

std::string KernelName(std::string_view symbol) { return Demangled(symbol).substr(0, kKernelNameBytesMax); }

absl::StatusOr<CubinFacts> ReadCubin(std::string_view bytes) {
  ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadHeader(bytes));
  ASSIGN_OR_RETURN(const std::vector<Section> sections, ReadSections(bytes, header));
  const Section* const symbols = Find(sections, SHT_SYMTAB, ".symtab");
  const Section* const info = Find(sections, SHT_LOPROC, ".nv.info");
  if (symbols == nullptr || info == nullptr) return Malformed("it lacks .symtab or .nv.info");
  if (symbols->header.sh_link >= sections.size()) return Malformed("its symbols have no names");
  const std::string_view names = sections[symbols->header.sh_link].data;
  const size_t num_symbols = symbols->data.size() / sizeof(Elf64_Sym);
  ASSIGN_OR_RETURN(const std::vector<Resources> resources, ReadResources(info->data, num_symbols));

  CubinFacts facts{.architecture = static_cast<int>((header.e_flags >> 8) & 0xffff), .kernels = {}};
  size_t code_bytes = 0;
  for (size_t i = 0; i < num_symbols && facts.kernels.size() < kCubinKernelsMax; ++i) {
    const auto symbol = Copy<Elf64_Sym>(symbols->data, i * sizeof(Elf64_Sym));
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & kEntryMask) == 0) continue;
    if (symbol.st_shndx == SHN_UNDEF) continue;  // of another file
    if (symbol.st_shndx >= sections.size()) return Malformed("a kernel lies in no section");
    // A section has one kernel. Were it read for many, the work would have no bound.
    code_bytes += sections[symbol.st_shndx].data.size();
    if (code_bytes > bytes.size()) return Malformed("sections of code overlap");
    ASSIGN_OR_RETURN(const std::string_view name, TextAt(names, symbol.st_name));
    ASSIGN_OR_RETURN(CubinKernel kernel,
                     ReadKernel(sections, symbol, name, resources[i], facts.architecture));
    facts.kernels.push_back(std::move(kernel));
  }
  return facts;
}

}  // namespace warpsmith
