// Tests what candidates' jails are given in each room.
#include <string>
#include <vector>

#include "core/base/memory_file.h"
#include "tests/support/catch.h"
#include "tests/unit/reward_service/referee/candidate_jails_bench.h"

namespace warpsmith {
namespace {

using Bench = JailsBench;

// Libraries with emptied kernels, told from others by their sizes: 1, 2, ...
std::vector<UniqueFd> EmptiedFiles(size_t num_files) {
  std::vector<UniqueFd> files;
  while (files.size() < num_files) files.push_back(*SealedMemoryFile(std::string(files.size() + 1, 'e')));
  return files;
}

TEST_CASE("in sealed rooms both zygote and jail are told to withhold libraries, in the others neither") {
  const std::vector<UniqueFd> emptied = EmptiedFiles(1);
  for (const Room room : {Room::kSealed, Room::kProducts, Room::kEmptied, Room::kOpen}) {
    Bench bench(CandidateKind::kNative, nlohmann::json::object(), room);
    bench.options.emptied = &emptied;
    bench.Renew();
    const auto started = bench.Start();
    REQUIRE(started.ok());
    REQUIRE_FALSE(started->fault);
    const bool is_sealed = room == Room::kSealed || room == Room::kProducts;
    const nlohmann::json told = Told(*started);
    CHECK(told["rights"]["sealed"] == is_sealed);
    CHECK(told["begin"]["withhold"] == is_sealed);
  }
}

TEST_CASE("a sealed candidate is looked at for code that is withheld, an open one is not") {
  const nlohmann::json script = {{"warm", {{"code", nlohmann::json::object()}}}};
  Bench in_sealed(CandidateKind::kNative, script, Room::kSealed);
  const auto sealed = in_sealed.Start();
  REQUIRE(sealed.ok());
  REQUIRE(sealed->fault);
  CHECK(sealed->fault->verdict == v1::VERDICT_HACK);
  CHECK(sealed->fault->hack_family == kWithheldCodeFamily);
  CHECK_FALSE(Bench(CandidateKind::kNative, script, Room::kOpen).Start()->fault);
}

TEST_CASE("with emptied kernels a candidate gets the libraries that have them, and its source as it is") {
  const std::vector<UniqueFd> emptied = EmptiedFiles(2);
  const auto sizes = [&](CandidateKind kind, Room room) {
    Bench bench(kind, nlohmann::json::object(), room);
    bench.options.emptied = &emptied;
    bench.Renew();
    const auto started = bench.Start();
    REQUIRE(started.ok());
    return Told(*started)["begin"]["descriptor_bytes"];
  };
  CHECK(sizes(CandidateKind::kNative, Room::kEmptied)[0] == 1);
  CHECK(sizes(CandidateKind::kNative, Room::kOpen)[0] == 0);
  const nlohmann::json python = sizes(CandidateKind::kKernelBenchPython, Room::kEmptied);
  CHECK(python.size() == 4);  // source, inputs, two extensions in their order
  CHECK(python[0] == 0);
  CHECK(python[2] == 1);
  CHECK(python[3] == 2);
  CHECK(sizes(CandidateKind::kKernelBenchPython, Room::kOpen)[2] == 0);
}

}  // namespace
}  // namespace warpsmith
