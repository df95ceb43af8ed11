#include "core/base/kernel_name.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("names are read without signature and hash") {
  CHECK(KernelName("bytes") == "bytes");
  CHECK(KernelName("_Z4castPfPKfi") == "cast");
  CHECK(KernelName("_Z5tiledILi16EEvPfPKfS2_i") == "tiled<16>");
  CHECK(KernelName("_ZN36_GLOBAL__N__52e2b2ae_4_k_cu_8cb32a1c6scalarEPfPKfi") ==
        "(anonymous namespace)::scalar");
  CHECK(KernelName("_Z5run_fIZ2goPfEUlS0_E_EvT_S0_") == "run_f<go(float*)::{lambda(float*)#1}>");
  CHECK(KernelName("_Z2fpIXadL_Z2ffPfEEEvS0_PFvS0_iE") == "fp<&(ff(float*))>");
  CHECK(KernelName("_Znonsense") == "_Znonsense");
  CHECK(KernelName("").empty());
  CHECK(KernelName(std::string(4000, 'x')).size() == kKernelNameBytesMax);
}

TEST_CASE("names that grow when they are read are their identifiers alone") {
  std::string bomb = "_ZN1a4boomI1bIS0_S0_E";
  for (int i = 0; i < 30; ++i) bomb += "1cIS1_S1_E";
  CHECK(KernelName(bomb + "EvT_") == "a::boom<...>");
  CHECK(KernelName("_ZN40_GLOBAL__N__be712f2a_9_static_cu__Z2ffPf5packsIJifdEEEvPfDpT_") ==
        "(anonymous namespace)::packs<...>");
  CHECK(KernelName("_ZN99aDp") == "_ZN99aDp");
  CHECK(KernelName("_ZDp") == "_ZDp");
  CHECK(KernelName("_Z99999999999999999999aDp") == "_Z99999999999999999999aDp");
}

}  // namespace
}  // namespace warpsmith
