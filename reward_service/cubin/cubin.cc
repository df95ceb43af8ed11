#include "reward_service/cubin/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/kernel_name.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr uint16_t kCudaMachine = 190;
// They say where e_flags has the architecture. Triton 3.6 brings a ptxas of CUDA 12.
constexpr uint8_t kAbiVersion12 = 7;
constexpr uint8_t kAbiVersion13 = 8;
constexpr uint8_t kEntryMask = 0x10;        // of a symbol's st_other: a kernel
constexpr int kReservedSharedBytes = 1024;  // at the begin of a block's shared memory, since sm_90
constexpr size_t kSymbolBytesMax = 4096;
// EXIT of sm_70 and later, as ptxas writes and nvdisasm reads it: 0x794d and 0x000fea0003800000, little-endian.
constexpr char kExit[] = "\x4d\x79\0\0\0\0\0\0\0\0\x80\x03\0\xea\x0f";
static_assert(sizeof(kExit) == kInstructionBytes);

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
  if (bytes.size() < sizeof(Elf64_Ehdr)) return Malformed("it has no ELF header");
  const auto header = Copy<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Malformed("it is no ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Malformed("it is not of 64 bits, little-endian");
  }
  if (header.e_machine != kCudaMachine) {
    return Malformed(absl::StrCat("its machine is ", header.e_machine, ", CUDA's is ", kCudaMachine));
  }
  return header;
}

absl::Status CheckVersion(const Elf64_Ehdr& header) {
  const uint8_t version = header.e_ident[EI_ABIVERSION];
  if (version != kAbiVersion12 && version != kAbiVersion13) {
    return Malformed(absl::StrCat("its ABI version is ", version, ", CUDA 12 has ", kAbiVersion12,
                                  " and CUDA 13 has ", kAbiVersion13));
  }
  return absl::OkStatus();
}

int ArchitectureOf(const Elf64_Ehdr& header) {
  const bool is_of_12 = header.e_ident[EI_ABIVERSION] == kAbiVersion12;
  return static_cast<int>(is_of_12 ? header.e_flags & 0xff : header.e_flags >> 8 & 0xffff);
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

bool IsKernel(const Elf64_Sym& symbol) {
  const bool is_entry = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & kEntryMask) != 0;
  return is_entry && symbol.st_shndx != SHN_UNDEF;  // which is of another file
}

// As EmptyKernels(), of the cubin at `start`; an error where there is none.
absl::StatusOr<int> EmptyKernelsAt(size_t start, std::string* bytes) {
  const std::string_view cubin = std::string_view(*bytes).substr(start);
  ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadHeader(cubin));
  ASSIGN_OR_RETURN(const std::vector<Section> sections, ReadSections(cubin, header));
  const Section* const symbols = Find(sections, SHT_SYMTAB, ".symtab");
  if (symbols == nullptr) return Malformed("it lacks .symtab");
  int num_kernels = 0;
  for (size_t i = 0; i < symbols->data.size() / sizeof(Elf64_Sym); ++i) {
    const auto symbol = Copy<Elf64_Sym>(symbols->data, i * sizeof(Elf64_Sym));
    if (!IsKernel(symbol)) continue;
    if (symbol.st_shndx >= sections.size()) return Malformed("a kernel lies in no section");
    const Section& code = sections[symbol.st_shndx];
    RETURN_IF_ERROR(Part(code.data, symbol.st_value, kInstructionBytes, "a kernel").status());
    bytes->replace(start + code.header.sh_offset + symbol.st_value, kInstructionBytes, kExit,
                   kInstructionBytes);
    ++num_kernels;
  }
  return num_kernels;
}

}  // namespace

int EmptyKernels(std::string* bytes) {
  int num_kernels = 0;
  constexpr std::string_view kMagic(ELFMAG, SELFMAG);
  for (size_t start = bytes->find(kMagic); start != bytes->npos; start = bytes->find(kMagic, start + 1)) {
    num_kernels += EmptyKernelsAt(start, bytes).value_or(0);  // none in the library's own header
  }
  return num_kernels;
}

absl::StatusOr<CubinFacts> ReadCubin(std::string_view bytes) {
  if (bytes.size() > kCubinBytesMax) return Malformed(absl::StrCat(bytes.size(), " bytes are too many"));
  ASSIGN_OR_RETURN(const Elf64_Ehdr header, ReadHeader(bytes));
  RETURN_IF_ERROR(CheckVersion(header));
  ASSIGN_OR_RETURN(const std::vector<Section> sections, ReadSections(bytes, header));
  const Section* const symbols = Find(sections, SHT_SYMTAB, ".symtab");
  const Section* const info = Find(sections, SHT_LOPROC, ".nv.info");
  if (symbols == nullptr || info == nullptr) return Malformed("it lacks .symtab or .nv.info");
  if (symbols->header.sh_link >= sections.size()) return Malformed("its symbols have no names");
  const std::string_view names = sections[symbols->header.sh_link].data;
  const size_t num_symbols = symbols->data.size() / sizeof(Elf64_Sym);
  ASSIGN_OR_RETURN(const std::vector<Resources> resources, ReadResources(info->data, num_symbols));

  CubinFacts facts{.architecture = ArchitectureOf(header), .kernels = {}};
  size_t code_bytes = 0;
  for (size_t i = 0; i < num_symbols && facts.kernels.size() < kCubinKernelsMax; ++i) {
    const auto symbol = Copy<Elf64_Sym>(symbols->data, i * sizeof(Elf64_Sym));
    if (!IsKernel(symbol)) continue;
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
