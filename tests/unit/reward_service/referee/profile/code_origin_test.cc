#include "reward_service/referee/profile/code_origin.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("code is attributed by the file it was mapped from") {
  CHECK(OriginOfPath("/candidate/candidate.so") == CodeOrigin::kOwn);
  // A jail can map no code from its own /tmp: a service lives there.
  CHECK(OriginOfPath("/tmp/w/torch/lib/libtorch_cpu.so") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("/tmp/w/bin/warpsmith-jail") == CodeOrigin::kOther);
  CHECK(OriginOfPath("/memfd:candidate (deleted)") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("[heap]") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("[vdso]") == CodeOrigin::kLibc);
  CHECK(OriginOfPath("/x/torch/lib/libtorch_cpu.so") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("/x/torch/lib/libc10.so") == CodeOrigin::kOther);
  CHECK(OriginOfPath("/usr/lib/x86_64-linux-gnu/libopenblas.so.0") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("/usr/lib/x86_64-linux-gnu/libc.so.6") == CodeOrigin::kLibc);
  CHECK(OriginOfPath("/usr/lib/x86_64-linux-gnu/libmvec.so.1") == CodeOrigin::kVectorMath);
  CHECK(OriginOfPath("/x/site-packages/numpy/_core/_multiarray_umath.cpython-311.so") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("/x/site-packages/torch/lib/libtorch_cpu.so") == CodeOrigin::kLibrary);
  CHECK(OriginOfPath("/usr/bin/python3.11") == CodeOrigin::kOther);
}

TEST_CASE("addresses are looked up in executable mappings only") {
  const CodeMap map = CodeMap::Parse(
      "1000-2000 r-xp 00000000 00:01 5    /candidate/candidate.so\n"
      "2000-3000 rw-p 00000000 00:01 5    /candidate/candidate.so\n"
      "4000-5000 r-xp 00000000 00:01 6    /usr/lib/libc.so.6\n"
      "malformed\n");
  CHECK(map.OriginOf(0x1000) == CodeOrigin::kOwn);
  CHECK(map.OriginOf(0x1fff) == CodeOrigin::kOwn);
  CHECK(map.OriginOf(0x2000) == CodeOrigin::kOther);
  CHECK(map.OriginOf(0x4800) == CodeOrigin::kLibc);
  CHECK(map.OriginOf(0x10) == CodeOrigin::kOther);
  CHECK(map.OriginOf(0xffffffff81000000) == CodeOrigin::kKernel);
}

// Bytes as gcc 12 and objdump give them.
TEST_CASE("vector width is read from prefixes and opcode") {
  CHECK(VectorBits({0x0F, 0x58, 0xC1}) == 128);                    // addps xmm0, xmm1
  CHECK(VectorBits({0xF3, 0x0F, 0x58, 0xC1}) == 0);                // addss
  CHECK(VectorBits({0xF2, 0x0F, 0x59, 0xC1}) == 0);                // mulsd
  CHECK(VectorBits({0x66, 0x0F, 0x58, 0xC1}) == 128);              // addpd
  CHECK(VectorBits({0xC5, 0xFC, 0x58, 0xC1}) == 256);              // vaddps ymm
  CHECK(VectorBits({0xC5, 0xF8, 0x58, 0xC1}) == 128);              // vaddps xmm
  CHECK(VectorBits({0xC5, 0xFA, 0x58, 0xC1}) == 0);                // vaddss
  CHECK(VectorBits({0xC4, 0xE2, 0x75, 0xA8, 0xC2}) == 256);        // vfmadd213ps ymm
  CHECK(VectorBits({0xC4, 0xE2, 0x71, 0xA9, 0xC2}) == 0);          // vfmadd213ss
  CHECK(VectorBits({0x62, 0xF1, 0x74, 0x48, 0x58, 0xC2}) == 512);  // vaddps zmm
  CHECK(VectorBits({0x62, 0xF1, 0x74, 0x28, 0x58, 0xC2}) == 256);  // vaddps ymm with EVEX
  CHECK(VectorBits({0xC5, 0xF8, 0x77}) == 0);                      // vzeroupper
  CHECK(VectorBits({0x48, 0x83, 0xC0, 0x40}) == 0);                // add rax, 64
  CHECK(VectorBits({0x75, 0xF0}) == 0);                            // jne
}

TEST_CASE("what scalar code does in vector registers is no vector work") {
  CHECK(VectorBits({0x0F, 0x57, 0xC1}) == 0);                    // xorps changes a sign
  CHECK(VectorBits({0xC5, 0xF8, 0x54, 0xC1}) == 0);              // vandps xmm takes a magnitude
  CHECK(VectorBits({0xC5, 0xF9, 0xEF, 0xC1}) == 0);              // vpxor xmm clears
  CHECK(VectorBits({0xC5, 0xF8, 0x28, 0xC1}) == 0);              // vmovaps xmm
  CHECK(VectorBits({0x0F, 0x14, 0xC0}) == 0);                    // unpcklps before cvtps2pd
  CHECK(VectorBits({0x0F, 0x5A, 0xC0}) == 0);                    // cvtps2pd
  CHECK(VectorBits({0xC4, 0xE2, 0xF9, 0xF7, 0xCB}) == 0);        // shlx
  CHECK(VectorBits({0xC4, 0xE3, 0xFB, 0xF0, 0xC8, 0x03}) == 0);  // rorx
  CHECK(VectorBits({0xC4, 0xE3, 0x79, 0x0A, 0xC1, 0x09}) == 0);  // vroundss
  CHECK(VectorBits({0xC5, 0xFC, 0x54, 0xC1}) == 256);            // vandps ymm
  CHECK(VectorBits({0xC5, 0xFC, 0x10, 0x00}) == 256);            // vmovups ymm
  CHECK(VectorBits({0x0F, 0x5F, 0xC1}) == 128);                  // maxps
  CHECK(VectorBits({0x66, 0x0F, 0xFE, 0xC1}) == 128);            // paddd
  CHECK(VectorBits({0xC5, 0xF9, 0xFE, 0xC1}) == 128);            // vpaddd xmm
}

}  // namespace
}  // namespace warpsmith
