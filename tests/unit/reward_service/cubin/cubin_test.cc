#include "reward_service/cubin/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/file.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Catch::Contains;

const std::filesystem::path kFolder = "tests/data/cubin";

std::string Golden(const std::string& file = "loads.sm_80.cubin") { return *ReadFile(kFolder / file); }

// As a line of facts.txt, which make.py writes.
std::string Line(const std::string& file, const CubinKernel& kernel) {
  const InstructionFacts facts = kernel.instructions.value_or(InstructionFacts());
  std::ostringstream line;
  line << file << ' ' << kernel.registers << ' ' << kernel.stack_bytes << ' ' << kernel.static_shared_bytes
       << ' ' << facts.num_instructions << ' ' << facts.num_local_accesses << ' ' << facts.load_bits << ' '
       << facts.num_tensor_core_instructions << ' ' << facts.num_barriers << ' ' << facts.num_atomics << ' '
       << facts.num_shuffles << ' ' << facts.num_async_copies << ' ' << kernel.name;
  return line.str();
}

// A golden cubin in which a test tells a lie.
struct Forged {
  std::string bytes = Golden();

  template <typename T>
  T Get(size_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  }
  template <typename T>
  void Put(size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  }
  Elf64_Ehdr header() const { return Get<Elf64_Ehdr>(0); }
  size_t OffsetOf(size_t section) const { return header().e_shoff + section * sizeof(Elf64_Shdr); }
  Elf64_Shdr Section(size_t section) const { return Get<Elf64_Shdr>(OffsetOf(section)); }
  std::string NameOf(size_t section) const {
    return bytes.c_str() + Section(header().e_shstrndx).sh_offset + Section(section).sh_name;
  }
  // The first section whose name begins so.
  size_t Find(const std::string& prefix) const {
    for (size_t i = 0; i < header().e_shnum; ++i) {
      if (NameOf(i).starts_with(prefix)) return i;
    }
    FAIL(prefix);
    return 0;
  }
  template <typename Change>
  void ChangeSection(const std::string& prefix, Change change) {
    const size_t place = OffsetOf(Find(prefix));
    auto section = Get<Elf64_Shdr>(place);
    change(&section);
    Put(place, section);
  }
  // Of the first kernel.
  template <typename Change>
  void ChangeSymbol(Change change) {
    const Elf64_Shdr table = Section(Find(".symtab"));
    for (size_t at = table.sh_offset; at < table.sh_offset + table.sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = Get<Elf64_Sym>(at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      change(&symbol);
      Put(at, symbol);
      return;
    }
    FAIL("no kernel");
  }
  std::string Refusal() const {
    const auto facts = ReadCubin(bytes);
    CHECK(absl::IsInvalidArgument(facts.status()));
    return std::string(facts.status().message());
  }
};

TEST_CASE("of every kept cubin the same is read as ptxas and nvdisasm say") {
  std::ifstream expected(kFolder / "facts.txt");
  std::map<std::string, std::vector<std::string>> lines;  // by file
  for (std::string line; std::getline(expected, line);) {
    if (line[0] != '#') lines[line.substr(0, line.find(' '))].push_back(line);
  }
  CHECK(lines.size() > 15);
  for (auto& [file, wanted] : lines) {
    if (file.find(".sm_75.") != std::string::npos) continue;  // the next test's
    const absl::StatusOr<CubinFacts> facts = ReadCubin(Golden(file));
    REQUIRE(facts.ok());
    std::vector<std::string> found;
    for (const CubinKernel& kernel : facts->kernels) {
      CHECK(kernel.instructions.has_value());
      found.push_back(Line(file, kernel));
    }
    std::sort(wanted.begin(), wanted.end());
    std::sort(found.begin(), found.end());
    CHECK(found == wanted);
  }
}

TEST_CASE("of an unknown family there are registers and no facts of instructions") {
  const absl::StatusOr<CubinFacts> facts = ReadCubin(Golden("loads.sm_75.cubin"));
  REQUIRE(facts.ok());
  CHECK(facts->architecture == 75);
  REQUIRE(facts->kernels.size() == 4);
  for (const CubinKernel& kernel : facts->kernels) {
    CHECK(kernel.registers >= 8);
    CHECK_FALSE(kernel.instructions.has_value());
  }
  Forged later;
  later.Put(offsetof(Elf64_Ehdr, e_flags), uint32_t{200 << 8});
  REQUIRE(ReadCubin(later.bytes).ok());
  CHECK(ReadCubin(later.bytes)->architecture == 200);
  CHECK_FALSE(ReadCubin(later.bytes)->kernels[0].instructions.has_value());
}

TEST_CASE("a cubin of CUDA 12 has its architecture in another place") {
  Forged older;
  older.Put(EI_ABIVERSION, char{7});
  older.Put(offsetof(Elf64_Ehdr, e_flags), uint32_t{80 << 16 | 0x0d00 | 80});
  const absl::StatusOr<CubinFacts> facts = ReadCubin(older.bytes);
  REQUIRE(facts.ok());
  CHECK(facts->architecture == 80);
  CHECK(Line("", facts->kernels[0]) == Line("", ReadCubin(Golden())->kernels[0]));
}

TEST_CASE("a file that ends early is refused wherever it ends") {
  const std::string whole = Golden();
  const Forged forged;
  const size_t end = forged.OffsetOf(forged.header().e_shnum);
  for (size_t length = 0; length < end; ++length) {
    if (!absl::IsInvalidArgument(ReadCubin(whole.substr(0, length)).status())) FAIL(length);
  }
}

TEST_CASE("what is no cubin is refused with the reason") {
  const auto refusal = [](size_t offset, auto value) {
    Forged forged;
    forged.Put(offset, value);
    return forged.Refusal();
  };
  CHECK_THAT(refusal(0, 'x'), Contains("no ELF"));
  CHECK_THAT(refusal(EI_CLASS, char{ELFCLASS32}), Contains("64 bits"));
  CHECK_THAT(refusal(EI_DATA, char{ELFDATA2MSB}), Contains("little-endian"));
  CHECK_THAT(refusal(EI_ABIVERSION, char{6}), Contains("ABI version is 6"));
  CHECK_THAT(refusal(offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_X86_64}), Contains("machine is 62"));
  CHECK_THAT(refusal(offsetof(Elf64_Ehdr, e_shentsize), uint16_t{0}), Contains("another form"));
  CHECK_THAT(refusal(offsetof(Elf64_Ehdr, e_shoff), ~uint64_t{0}), Contains("beyond its end"));
  CHECK_THAT(refusal(offsetof(Elf64_Ehdr, e_shnum), uint16_t{0xffff}), Contains("beyond its end"));
  CHECK_THAT(refusal(offsetof(Elf64_Ehdr, e_shnum), uint16_t{0}), Contains("no names"));
  CHECK_THAT(refusal(offsetof(Elf64_Ehdr, e_shstrndx), uint16_t{0xffff}), Contains("no names"));
  CHECK_THAT(Forged{std::string(kCubinBytesMax + 1, 'x')}.Refusal(), Contains("too many"));
}

TEST_CASE("a section that lies about its place, size or name is refused") {
  const auto refusal = [](const std::string& prefix, auto change) {
    Forged forged;
    forged.ChangeSection(prefix, change);
    return forged.Refusal();
  };
  for (const std::string prefix : {".text.", ".nv.info", ".symtab", ".strtab", ".shstrtab"}) {
    CHECK_THAT(refusal(prefix, [](Elf64_Shdr* section) { section->sh_size = ~uint64_t{0}; }),
               Contains("beyond"));
    CHECK_THAT(refusal(prefix, [](Elf64_Shdr* section) { section->sh_offset = ~uint64_t{0} - 8; }),
               Contains("beyond"));
  }
  CHECK_THAT(refusal(".text.", [](Elf64_Shdr* section) { section->sh_name = 0xffffffff; }), Contains("name"));
  CHECK_THAT(refusal(".text.", [](Elf64_Shdr* section) { section->sh_name = 0; }),
             Contains("no section of code"));
  CHECK_THAT(refusal(".text.", [](Elf64_Shdr* section) { section->sh_size -= 8; }),
             Contains("within an instruction"));
  CHECK_THAT(refusal(".symtab", [](Elf64_Shdr* section) { section->sh_link = 0xffff; }),
             Contains("no names"));
  CHECK_THAT(refusal(".symtab", [](Elf64_Shdr* section) { section->sh_type = SHT_NOTE; }), Contains("lacks"));
  CHECK_THAT(refusal(".symtab", [](Elf64_Shdr* section) { section->sh_size = 24; }),
             Contains("that it lacks"));
  CHECK_THAT(refusal(".strtab", [](Elf64_Shdr* section) { section->sh_size = 1; }), Contains("name"));
  CHECK_THAT(refusal(".nv.info", [](Elf64_Shdr* section) { section->sh_size -= 2; }), Contains("ends early"));
}

TEST_CASE("a kernel in no section, and one whose memory cannot be, are refused") {
  Forged nowhere;
  nowhere.ChangeSymbol([](Elf64_Sym* symbol) { symbol->st_shndx = 0xfff0; });
  CHECK_THAT(nowhere.Refusal(), Contains("in no section"));
  Forged elsewhere;
  elsewhere.ChangeSymbol([](Elf64_Sym* symbol) { symbol->st_shndx = 1; });
  CHECK_THAT(elsewhere.Refusal(), Contains("no section of code"));
  Forged nameless;
  nameless.ChangeSymbol([](Elf64_Sym* symbol) { symbol->st_name = 0x7fffffff; });
  CHECK_THAT(nameless.Refusal(), Contains("a name lies beyond"));
  Forged vast{Golden("shared.sm_80.cubin")};
  vast.ChangeSection(".nv.shared._Z", [](Elf64_Shdr* section) { section->sh_size = uint64_t{1} << 40; });
  CHECK_THAT(vast.Refusal(), Contains("shared memory cannot be"));
}

TEST_CASE("a figure of no symbol and a giant figure are refused") {
  const auto refusal = [](size_t at, uint32_t value, uint8_t size = 8) {
    Forged forged;
    const size_t place = forged.Section(forged.Find(".nv.info")).sh_offset;  // 04 2f 08 00, symbol, registers
    REQUIRE(forged.Get<uint32_t>(place) == 0x00082f04);
    forged.Put(place + 2, size);
    forged.Put(place + at, value);
    return forged.Refusal();
  };
  CHECK_THAT(refusal(4, 0x7fffffff), Contains("a symbol that it lacks"));
  CHECK_THAT(refusal(8, 0xffffffff), Contains("a number of registers cannot be 4294967295"));
  CHECK_THAT(refusal(0, 0x00042f04, 4), Contains("figure of no symbol"));
  CHECK_THAT(refusal(0, 0xffff2f04, 0xff), Contains("ends early"));
}

TEST_CASE("code that is claimed by several kernels is read once or refused") {
  Forged forged;
  const std::string first = ".text.";
  for (size_t i = 0; i < forged.header().e_shnum; ++i) {
    if (!forged.NameOf(i).starts_with(first)) continue;
    auto section = forged.Section(i);
    section.sh_offset = 0;
    section.sh_size = forged.bytes.size() / kInstructionBytes * kInstructionBytes;
    forged.Put(forged.OffsetOf(i), section);
  }
  CHECK_THAT(forged.Refusal(), Contains("overlap"));
}

TEST_CASE("every kernel of every cubin in a file is emptied, and nothing else is touched") {
  const std::string cubin = Golden();
  const size_t num_kernels = ReadCubin(cubin)->kernels.size();
  REQUIRE(num_kernels > 1);
  std::string library = "code of the host" + cubin + std::string(40, '.') + cubin;
  const std::string before = library;
  CHECK(EmptyKernels(&library) == static_cast<int>(2 * num_kernels));
  REQUIRE(library.size() == before.size());
  size_t num_changed = 0;
  for (size_t i = 0; i < library.size(); ++i) num_changed += library[i] != before[i] ? 1 : 0;
  CHECK(num_changed > 0);
  CHECK(num_changed <= 2 * num_kernels * 16);
  // `EXIT ;` as cuobjdump shows it for sm_80 to sm_120.
  const std::string exit("\x4d\x79\0\0\0\0\0\0\0\0\x80\x03\0\xea\x0f\0", 16);
  size_t num_exits = 0;
  for (size_t at = library.find(exit); at != library.npos; at = library.find(exit, at + 1)) ++num_exits;
  size_t num_exits_before = 0;
  for (size_t at = before.find(exit); at != before.npos; at = before.find(exit, at + 1)) ++num_exits_before;
  CHECK(num_exits == num_exits_before + 2 * num_kernels);
  std::string host = "no kernels here";
  CHECK(EmptyKernels(&host) == 0);
}

TEST_CASE("a malformed cubin is left, and those behind it are emptied") {
  Forged forged;
  forged.ChangeSection(".symtab", [](Elf64_Shdr* section) { section->sh_size = uint64_t{1} << 40; });
  const std::string malformed = forged.bytes;
  std::string library = malformed + Golden();
  CHECK(EmptyKernels(&library) == static_cast<int>(ReadCubin(Golden())->kernels.size()));
  CHECK(library.starts_with(malformed));
}

TEST_CASE("a function that is no kernel has no row") {
  Forged forged;
  forged.ChangeSymbol([](Elf64_Sym* symbol) { symbol->st_other = 0; });
  REQUIRE(ReadCubin(forged.bytes).ok());
  CHECK(ReadCubin(forged.bytes)->kernels.size() == 3);
  forged.ChangeSymbol([](Elf64_Sym* symbol) { symbol->st_other = 0x10; });
  CHECK(ReadCubin(forged.bytes)->kernels.size() == 4);
}

}  // namespace
}  // namespace warpsmith
