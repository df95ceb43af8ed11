#include "reward_service/compiler/nvcc_steps.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// As nvcc 13.0 prints them, shortened.
constexpr char kSteps[] = R"(#$ _SPACE_= 
#$ CICC_PATH=/cuda/nvvm/bin
#$ PATH=/cuda/bin:/it's
#$ LIBRARIES=  "-L/cuda/lib"
#$ "/usr/bin"/g++ -E "candidate.cu" -o "/tmp/candidate.cpp4.ii" 
#$ cudafe++ --gen_module_id_file --module_id_file_name "/tmp/candidate.module_id" "/tmp/candidate.cpp4.ii" 
#$ "/usr/bin"/g++ -D__CUDA_ARCH__=900 -E "candidate.cu" -o "/tmp/candidate.cpp1.ii" 
#$ "$CICC_PATH/cicc" --module_id_file_name "/tmp/candidate.module_id" "/tmp/candidate.cpp1.ii" -o "/tmp/candidate.ptx"
#$ ptxas -arch=sm_90a "/tmp/candidate.ptx" -o "/tmp/candidate.cubin" 
#$ fatbinary "--image3=kind=elf,sm=90a,file=/tmp/candidate.cubin" --embedded-fatbin="/tmp/candidate.fatbin.c" 
#$ "/usr/bin"/g++ -c "/tmp/candidate.cudafe1.cpp" -o "/tmp/candidate.o" 
#$ "/usr/bin"/g++ "/tmp/candidate.o" -shared -o "/tmp/candidate.so" 
)";

std::string Without(const std::string& words) {
  std::string steps = kSteps;
  const size_t begin = steps.find(words);
  REQUIRE(begin != std::string::npos);
  return steps.erase(begin, words.size());
}

TEST_CASE("machine code is made while the host's code is taken apart, and then both are compiled together") {
  const absl::StatusOr<std::string> script = ScriptOfSteps(kSteps);
  REQUIRE(script.ok());
  const std::vector<std::string> lines = absl::StrSplit(*script, '\n');
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] == "export CICC_PATH='/cuda/nvvm/bin'");
  CHECK(lines[1] == R"(export PATH='/cuda/bin:/it'\''s')");
  CHECK(lines[2] == R"(printf %s _candidate >"/tmp/candidate.module_id")");
  const std::vector<std::string> device = absl::StrSplit(lines[3], " && ");
  REQUIRE(device.size() == 4);
  CHECK(device[0] ==
        R"({ "/usr/bin"/g++ -D__CUDA_ARCH__=900 -E "candidate.cu" -o "/tmp/candidate.cpp1.ii" )");
  CHECK(device[3].substr(0, 10) == "fatbinary ");
  CHECK_THAT(device[3], Catch::EndsWith("; } 2>/tmp/device.messages &"));
  CHECK(lines[4] ==
        R"("/usr/bin"/g++ -E "candidate.cu" -o "/tmp/candidate.cpp4.ii"  && )"
        R"(cudafe++ --module_id_file_name "/tmp/candidate.module_id" "/tmp/candidate.cpp4.ii"  || exit)");
  CHECK(lines[5] == "wait $!; status=$?; cat /tmp/device.messages >&2; [ $status = 0 ] || exit $status");
  CHECK(lines[6] == R"("/usr/bin"/g++ -c "/tmp/candidate.cudafe1.cpp" -o "/tmp/candidate.o"  && )"
                    R"("/usr/bin"/g++ "/tmp/candidate.o" -shared -o "/tmp/candidate.so" )");
}

TEST_CASE("other steps than those that are known are left to nvcc") {
  const std::string twice = std::string(kSteps) + "#$ nvlink\n";
  for (const std::string& steps :
       {std::string(), Without("--gen_module_id_file "), Without("--module_id_file_name "),
        Without("#$ ptxas "), Without("cudafe++ "), twice}) {
    INFO(steps);
    CHECK(absl::IsUnimplemented(ScriptOfSteps(steps).status()));
  }
}

TEST_CASE("what nvcc does not take is left as it is") {
  const std::vector<std::string> command = {"/bin/false", "candidate.cu"};
  CHECK(InTwoChains(command, std::atomic<bool>(false)) == command);
}

}  // namespace
}  // namespace warpsmith
