#include "reward_service/compiler/compile_cache.h"

#include <sys/mount.h>

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/counter_random.h"
#include "core/base/file.h"
#include "core/base/memory_file.h"
#include "core/base/sha256.h"
#include "tests/support/catch.h"
#include "tests/support/run_together.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

const std::atomic<bool> kWanted{false};

CompiledProgram Program(const std::string& bytes) {
  CompiledProgram program;
  program.library = std::make_shared<const UniqueFd>(*SealedMemoryFile(bytes));
  program.library_bytes = static_cast<int64_t>(bytes.size());
  program.diagnostics = "1:1: warning: w\n";
  return program;
}

std::string BytesOf(const CompiledProgram& program) {
  return *ReadMemoryFile(program.library->get(), 1 << 20);
}

TEST_CASE("what was compiled once is not compiled again") {
  CompileCache cache({});
  int num_compiled = 0;
  const auto compile = [&]() -> absl::StatusOr<CompiledProgram> { return ++num_compiled, Program("bytes"); };
  REQUIRE(cache.GetOrCompile("k", kWanted, compile).ok());
  const auto again = cache.GetOrCompile("k", kWanted, compile);
  CHECK(num_compiled == 1);
  CHECK(again->cached);
  CHECK(BytesOf(*again) == "bytes");
}

TEST_CASE("the key depends on source and toolchain") {
  CHECK(CompileCache::Key("g++ 12", "a") != CompileCache::Key("g++ 13", "a"));
  CHECK(CompileCache::Key("g++ 12", "a") != CompileCache::Key("g++ 12", "b"));
}

TEST_CASE("a refused program is remembered too, an infrastructure failure is not") {
  CompileCache cache({});
  int num_calls = 0;
  const auto refuse = [&]() -> absl::StatusOr<CompiledProgram> { return ++num_calls, CompiledProgram{}; };
  REQUIRE(cache.GetOrCompile("refused", kWanted, refuse).ok());
  REQUIRE(cache.GetOrCompile("refused", kWanted, refuse).ok());
  CHECK(num_calls == 1);
  const auto fail = [&]() -> absl::StatusOr<CompiledProgram> {
    return ++num_calls, absl::InternalError("fork");
  };
  CHECK_FALSE(cache.GetOrCompile("failed", kWanted, fail).ok());
  CHECK_FALSE(cache.GetOrCompile("failed", kWanted, fail).ok());
  CHECK(num_calls == 3);
}

TEST_CASE("eight callers of one key compile it once") {
  CompileCache cache({});
  std::atomic<int> num_compiled{0};
  std::atomic<int> num_right{0};
  RunTogether(8, [&](int) {
    const auto program = cache.GetOrCompile("k", kWanted, [&]() -> absl::StatusOr<CompiledProgram> {
      ++num_compiled;
      return Program("bytes");
    });
    num_right += program.ok() && BytesOf(*program) == "bytes";
  });
  CHECK(num_compiled == 1);
  CHECK(num_right == 8);
}

TEST_CASE("a program outlives the cache in its folder") {
  TemporaryDirectory folder;
  const CompileCacheOptions options{.directory = folder.path() / "compiled"};
  {
    CompileCache cache(options);
    REQUIRE(cache.GetOrCompile("k", kWanted, [] { return absl::StatusOr<CompiledProgram>(Program("bytes")); })
                .ok());
  }
  CompileCache cache(options);
  const auto program = cache.GetOrCompile(
      "k", kWanted, [] { return absl::StatusOr<CompiledProgram>(absl::InternalError("not needed")); });
  REQUIRE(program.ok());
  CHECK(program->cached);
  CHECK(BytesOf(*program) == "bytes");
  CHECK(program->diagnostics == "1:1: warning: w\n");
}

TEST_CASE("all of a program outlives the service") {
  TemporaryDirectory folder;
  const CompileCacheOptions options{.directory = folder.path()};
  const auto compile = [] {
    CompiledProgram program = Program("bytes");
    program.headers = "facade";
    program.compiler = "nvcc 13.0.88";
    program.cubins = {{"sm_90a", "first\n"}, {"sm_80", std::string("\0x", 2)}};
    return absl::StatusOr<CompiledProgram>(program);
  };
  { CompileCache(options).GetOrCompile("k", kWanted, compile).IgnoreError(); }
  const auto program = CompileCache(options).GetOrCompile("k", kWanted, compile);
  REQUIRE(program.ok());
  CHECK(program->cached);
  CHECK(BytesOf(*program) == "bytes");
  CHECK(program->diagnostics == "1:1: warning: w\n");
  CHECK(program->headers == "facade");
  CHECK(program->compiler == "nvcc 13.0.88");
  REQUIRE(program->cubins.size() == 2);
  CHECK(program->cubins[0].architecture == "sm_90a");
  CHECK(program->cubins[0].bytes == "first\n");
  CHECK(program->cubins[1].architecture == "sm_80");
  CHECK(program->cubins[1].bytes == std::string("\0x", 2));
}

TEST_CASE("a damaged file is compiled again") {
  TemporaryDirectory folder;
  const CompileCacheOptions options{.directory = folder.path()};
  const auto compile = [] { return absl::StatusOr<CompiledProgram>(Program("bytes")); };
  { CompileCache(options).GetOrCompile("k", kWanted, compile).IgnoreError(); }
  const std::string content = *ReadFile(folder.path() / "k");
  const std::string other_form = absl::StrCat("headers\n2\nw\n", "bytes");
  const std::string contents[] = {"", content.substr(0, 10), content.substr(0, 65),
                                  content.substr(0, content.size() - 1),
                                  absl::StrCat(Sha256Hex(other_form), "\n", other_form)};
  for (const std::string& damaged : contents) {
    std::ofstream(folder.path() / "k") << damaged;
    CompileCache cache(options);
    const auto program = cache.GetOrCompile("k", kWanted, compile);
    REQUIRE(program.ok());
    CHECK_FALSE(program->cached);
  }
}

TEST_CASE("a full disk costs the entry, not the result") {
  TemporaryDirectory folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=4k") != 0) {
    WARN("no right to mount a small disk: not tested");
    return;
  }
  {
    CompileCache cache({.directory = folder.path()});
    const auto program = cache.GetOrCompile(
        "k", kWanted, [] { return absl::StatusOr<CompiledProgram>(Program(std::string(1 << 16, 'x'))); });
    REQUIRE(program.ok());
    CHECK(program->library_bytes == 1 << 16);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  umount(folder.path().c_str());
}

TEST_CASE("small programs are bounded in number, for each holds a descriptor") {
  CompileCache cache({.memory_bytes_max = 1 << 20, .num_programs_max = 4});
  int num_compiled = 0;
  const auto compile = [&]() -> absl::StatusOr<CompiledProgram> { return ++num_compiled, Program("bytes"); };
  for (int i = 0; i < 6; ++i) REQUIRE(cache.GetOrCompile(std::to_string(i), kWanted, compile).ok());
  REQUIRE(cache.GetOrCompile("5", kWanted, compile)->cached);
  REQUIRE(cache.GetOrCompile("2", kWanted, compile)->cached);
  REQUIRE_FALSE(cache.GetOrCompile("1", kWanted, compile)->cached);
  CHECK(num_compiled == 7);
}

TEST_CASE("the folder keeps its budget, oldest files first") {
  TemporaryDirectory folder;
  CompileCache cache({.directory = folder.path(), .directory_bytes_max = 4000});
  for (int i = 0; i < 10; ++i) {
    const auto compile = [] { return absl::StatusOr<CompiledProgram>(Program(std::string(900, 'x'))); };
    REQUIRE(cache.GetOrCompile(std::to_string(i), kWanted, compile).ok());
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "0"));
  CHECK(std::filesystem::exists(folder.path() / "9"));
}

TEST_CASE("callers who want the same, something else, or nothing any more each get their own program") {
  constexpr uint64_t kSeed = 77;
  constexpr int kNumKeys = 12;
  CAPTURE(kSeed);
  TemporaryDirectory folder;
  // Room for half of the keys in memory and for a few on disk: what one caller inserts evicts another's.
  CompileCache cache({.memory_bytes_max = 6000,
                      .num_programs_max = 6,
                      .directory = folder.path(),
                      .directory_bytes_max = 2000});
  std::vector<std::atomic<int>> num_compiling(kNumKeys);
  std::atomic<int> num_wrong{0}, num_right{0}, num_failed{0};
  RunTogether(8, [&](int caller) {
    for (uint64_t i = 0; i < 150; ++i) {
      const uint64_t word = UniformWord(kSeed + static_cast<uint64_t>(caller), i);
      const size_t key = word % kNumKeys;
      const std::atomic<bool> cancelled{(word >> 8 & 1) != 0};
      const std::string bytes(200 + key, static_cast<char>('a' + key));
      const auto compile = [&]() -> absl::StatusOr<CompiledProgram> {
        if (++num_compiling[key] != 1) ++num_wrong;
        CompiledProgram program = Program(bytes);
        --num_compiling[key];
        if ((word >> 9 & 7) == 0) return absl::InternalError("fork");
        return program;
      };
      const auto program = cache.GetOrCompile(absl::StrCat("key", key), cancelled, compile);
      if (!program.ok()) {
        ++(absl::IsInternal(program.status()) || cancelled ? num_failed : num_wrong);
      } else {
        ++(BytesOf(*program) == bytes ? num_right : num_wrong);
      }
    }
  });
  CHECK(num_wrong == 0);
  CHECK(num_failed > 0);
  CHECK(num_right > 8 * 150 / 2);
}

TEST_CASE("writers who find the folder full at the same time remove no more than one of them would") {
  TemporaryDirectory folder;
  constexpr int64_t kBytesMax = 32 << 10;
  CompileCache cache({.directory = folder.path(), .directory_bytes_max = kBytesMax});
  RunTogether(8, [&](int writer) {
    for (int i = 0; i < 40; ++i) {
      const auto compile = [] { return absl::StatusOr<CompiledProgram>(Program(std::string(900, 'x'))); };
      cache.GetOrCompile(absl::StrCat(writer, "-", i), kWanted, compile).IgnoreError();
    }
  });
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  CHECK(bytes <= kBytesMax);
  CHECK(bytes > kBytesMax / 4 * 3 - 1024);
}

}  // namespace
}  // namespace warpsmith
