#include "reward_service/sandbox/mapped_code.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("executable mappings are read from the kernel's text") {
  const auto found = ParseMappedCode(
      "0041f000-006d2000 r-xp 0001f000 fe:00 1234                     /usr/bin/python3.11\n"
      "7f4e00000000-7f4e00001000 rw-p 00000000 00:00 0\n"
      "7f4e00001000-7f4e00003000 rwxp 00000000 00:00 0\n"
      "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0        [vsyscall]\n");
  REQUIRE(found.ok());
  REQUIRE(found->size() == 4);
  CHECK((*found)[0].start == 0x41f000);
  CHECK((*found)[0].end == 0x6d2000);
  CHECK((*found)[0].file_offset == 0x1f000);
  CHECK((*found)[0].path == "/usr/bin/python3.11");
  CHECK_FALSE((*found)[0].writable);
  CHECK((*found)[1].path.empty());
  CHECK((*found)[1].writable);
  CHECK((*found)[2].path == "[vdso]");
  CHECK((*found)[3].end == 0xffffffffff601000);
}

TEST_CASE("a path may hold blanks, and a replaced file keeps its name") {
  const auto found = ParseMappedCode(
      "1000-2000 r-xp 00000000 fe:00 1          /a folder/a file\n"
      "2000-3000 r-xp 00000000 fe:00 2          /usr/lib/libm.so.6 (deleted)\n");
  REQUIRE(found.ok());
  CHECK((*found)[0].path == "/a folder/a file");
  CHECK((*found)[1].path == "/usr/lib/libm.so.6");
}

TEST_CASE("what is no list of mappings is refused") {
  for (const char* text : {"x", "1000-2000 r-xp", "1000 r-xp 0 0:0 0 /a", "2000-1000 r-xp 0 0:0 0 /a",
                           "1000-2000 rx 0 0:0 0 /a", "1000-2000 r-xp zz 0:0 0 /a"}) {
    INFO(text);
    CHECK_FALSE(ParseMappedCode(text).ok());
  }
  CHECK(ParseMappedCode("").value().empty());
}

TEST_CASE("a process that is gone has no mappings") { CHECK_FALSE(ReadMappedCode(1 << 30).ok()); }

TEST_CASE("a page that a process has written to is its own") {
  const auto mappings = ReadMappedCode(getpid());
  REQUIRE(mappings.ok());
  REQUIRE_FALSE(mappings->empty());
  const MappedCode& code = mappings->front();
  CHECK(FindWritten(getpid(), {code}) == nullptr);
  const int file = fileno(tmpfile());
  REQUIRE(ftruncate(file, 8192) == 0);
  auto* const page = static_cast<volatile char*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, file, 0));
  REQUIRE(page != MAP_FAILED);
  const auto start = reinterpret_cast<uint64_t>(page);
  (void)page[0];
  const std::vector<MappedCode> first = {{.start = start, .end = start + 4096}};
  const std::vector<MappedCode> both = {code, {.start = start, .end = start + 8192}};
  CHECK(FindWritten(getpid(), both) == nullptr);
  page[5000] = 0;
  CHECK(FindWritten(getpid(), both) == &both[1]);
  CHECK(FindWritten(getpid(), first) == nullptr);
  close(file);
}

}  // namespace
}  // namespace warpsmith
