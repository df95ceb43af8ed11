// The referee's kernels on a real GPU beside its comparison on the host, on random numbers of each type.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "reward_service/referee/tensors/comparison.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr int kFloat = 2, kBrainFloat = 4, kInteger = 0;

GpuStore& Store() {
  static const std::unique_ptr<GpuStore> store = [] {
    auto opened = GpuStore::Open(0);
    WS_CHECK(opened.ok()) << opened.status().ToString();
    (*opened)->set_host_draw_bytes_max(int64_t{4} << 30);
    return *std::move(opened);
  }();
  return *store;
}

TensorSpec Spec(int code, int bits, int64_t num_elements) {
  TensorSpec spec;
  spec.code = code;
  spec.bits = bits;
  spec.shape = {num_elements};
  spec.num_elements = num_elements;
  spec.num_bytes = num_elements * bits / 8;
  return spec;
}

// Bits of numbers of about this size, at random, and near them others.
std::vector<char> Numbers(const TensorSpec& spec, std::mt19937* random, const std::vector<char>* near) {
  std::vector<char> bytes(static_cast<size_t>(spec.num_bytes));
  const auto element_bytes = static_cast<size_t>(spec.bits / 8);
  std::normal_distribution<float> normal(0, 3);
  std::uniform_int_distribution<int> nudge(0, 3);
  for (size_t i = 0; i < bytes.size(); i += element_bytes) {
    if (near != nullptr) {
      std::memcpy(&bytes[i], near->data() + i, element_bytes);
      bytes[i] = static_cast<char>(bytes[i] ^ nudge(*random));
    } else if (spec.bits == 64) {
      const double value = static_cast<double>(normal(*random));
      std::memcpy(&bytes[i], &value, sizeof(value));
    } else if (spec.bits == 32) {
      const float value = normal(*random);
      std::memcpy(&bytes[i], &value, sizeof(value));
    } else {  // of both 16-bit types a number, and no infinity
      const auto value = static_cast<uint16_t>((*random)() & 0xBBFFU);
      std::memcpy(&bytes[i], &value, sizeof(value));
    }
  }
  return bytes;
}

// By turns with what is expected on the GPU and on the host.
Comparison OnGpu(TensorSpec spec, const Tolerance& tolerance, const std::vector<char>& expected,
                 const std::vector<char>& actual, const std::vector<uint32_t>& margins = {}) {
  const auto margin_bytes = static_cast<int64_t>(margins.size() * sizeof(uint32_t));
  spec.margins_offset = (spec.num_bytes + 63) / 64 * 64;
  const auto memory = *Store().Make(spec.margins_offset + margin_bytes);
  memory->Write(expected.data(), 0, spec.num_bytes);
  memory->Write(reinterpret_cast<const char*>(margins.data()), spec.margins_offset, margin_bytes);
  static bool on_host = false;
  on_host = !on_host;
  const OwnTensors kept =
      *Store().Keep(*memory, 0, memory->num_bytes(), on_host ? KeptIn::kHost : KeptIn::kDevice);
  memory->Write(actual.data(), 0, spec.num_bytes);
  const auto result = Store().CompareInPlace({spec, tolerance, kept}, *memory, 0);
  REQUIRE(result.ok());
  return *result;
}

// Margins of about 2^exponent, a third of them left out of the mean.
std::vector<uint32_t> Margins(int64_t num_elements, int exponent, std::mt19937* random) {
  std::vector<uint32_t> words(static_cast<size_t>(num_elements));
  for (uint32_t& word : words) {
    const auto bits = static_cast<uint32_t>((*random)());
    word = (bits % 3 == 0 ? 0x80000000u : 0u) | (static_cast<uint32_t>(127 + exponent) << 23) |
           (bits & 0x7FFFFFu);
  }
  return words;
}

TEST_CASE("kernels find what the host finds") {
  std::mt19937 random(7);
  const bool has_margins = GENERATE(false, true);
  for (const auto& [code, bits] : {std::pair{kFloat, 64}, {kFloat, 32}, {kFloat, 16}, {kBrainFloat, 16}}) {
    for (const int64_t num_elements : {1, 33, 4097, 3'000'001}) {
      const TensorSpec spec = Spec(code, bits, num_elements);
      const std::vector<char> expected = Numbers(spec, &random, nullptr);
      std::vector<char> actual = Numbers(spec, &random, &expected);
      for (const int exponent : {-60, -23, -10, 0}) {
        const std::vector<uint32_t> margins =
            has_margins ? Margins(num_elements, exponent, &random) : std::vector<uint32_t>();
        const double size = std::ldexp(1.0, exponent);
        const Tolerance tolerance{
            .absolute = size, .relative = size / 2, .reach = 1.5, .has_margins = has_margins};
        const Comparison host = Compare(
            spec, tolerance, {expected.data(), has_margins ? margins.data() : nullptr}, actual.data());
        const Comparison gpu = OnGpu(spec, tolerance, expected, actual, margins);
        INFO(code << " " << bits << " " << num_elements << " " << exponent);
        CHECK(gpu.num_wrong == host.num_wrong);
        CHECK(gpu.first_outlier == host.first_outlier);
        CHECK(gpu.max_absolute_error == Approx(host.max_absolute_error));
        CHECK(gpu.num_non_finite == host.num_non_finite);
        CHECK(gpu.num_unwritten == host.num_unwritten);
        CHECK(gpu.first_difference == host.first_difference);
      }
    }
  }
}

TEST_CASE("kernels add up the squares that the host adds up") {
  std::mt19937 random(11);
  const TensorSpec spec = Spec(kFloat, 32, 1'000'001);
  const std::vector<char> expected = Numbers(spec, &random, nullptr);
  const std::vector<char> actual = Numbers(spec, &random, &expected);
  const std::vector<uint32_t> margins = Margins(spec.num_elements, -19, &random);
  int num_right = 0;
  for (int percent = 1; percent < 100; ++percent) {
    const Tolerance tolerance{
        .outliers_max = spec.num_elements, .bulk_max = 0.01 * percent, .has_margins = true};
    const bool is_right = Compare(spec, tolerance, {expected.data(), margins.data()}, actual.data()).right();
    CHECK(OnGpu(spec, tolerance, expected, actual, margins).right() == is_right);
    num_right += is_right ? 1 : 0;
  }
  CHECK(num_right > 0);
  CHECK(num_right < 99);
}

TEST_CASE("a number that is none is wrong on the GPU, too") {
  const TensorSpec spec = Spec(kFloat, 32, 1000);
  std::vector<char> expected(4000, 0), actual(4000, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  std::memcpy(&actual[400], &nan, 4);
  std::memcpy(&actual[800], &infinity, 4);
  const Comparison found = OnGpu(spec, {.absolute = 1e30, .outliers_max = 5}, expected, actual);
  CHECK(found.num_wrong == 2);
  CHECK(found.max_absolute_error == 0);
  CHECK(found.num_non_finite == 2);
  CHECK(found.first_difference == "[100]: nan, expected 0");
}

TEST_CASE("elements that lie apart on the GPU are gathered as on the host") {
  const auto context = *cuda::GpuContext::Open(0);
  const auto kernels = *cuda::TensorKernels::Create(context.get());
  std::mt19937 random(9);
  for (const int64_t element_bytes : {1, 2, 4, 8}) {
    // Channels last of images, and every other one of rows.
    for (const auto& [shape, strides] :
         {std::pair{std::vector<int64_t>{3, 5, 7, 11}, std::vector<int64_t>{385, 1, 55, 5}},
          {{1001, 33}, {66, 2}},
          {{2, 3, 4, 5}, {1, 2, 6, 24}}}) {
      int64_t count = 1, span = 1;
      for (size_t d = 0; d < shape.size(); ++d) {
        count *= shape[d];
        span += (shape[d] - 1) * strides[d];
      }
      std::vector<char> source(static_cast<size_t>(span * element_bytes));
      for (char& byte : source) byte = static_cast<char>(random());
      std::vector<char> wanted, got(static_cast<size_t>(count * element_bytes));
      for (int64_t i = 0; i < count; ++i) {
        int64_t rest = i, offset = 0;
        for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) offset += rest % shape[d] * strides[d];
        const auto from = source.begin() + offset * element_bytes;
        wanted.insert(wanted.end(), from, from + element_bytes);
      }
      const auto left = *cuda::GpuMemory::Allocate(context.get(), span * element_bytes);
      const auto right = *cuda::GpuMemory::Allocate(context.get(), count * element_bytes);
      REQUIRE(left->Write(source.data(), 0, span * element_bytes).ok());
      REQUIRE(
          kernels
              ->Gather(element_bytes, *cuda::JoinedPlaces(shape, strides), left->address(), right->address())
              .ok());
      REQUIRE(right->Read(got.data(), 0, count * element_bytes).ok());
      CHECK((got == wanted));
    }
  }
}

TEST_CASE("integers are right when all bytes are") {
  std::mt19937 random(8);
  for (const int64_t num_elements : {1, 7, 8, 1'000'003}) {
    const TensorSpec spec = Spec(kInteger, 8, num_elements);
    std::vector<char> expected(static_cast<size_t>(num_elements));
    for (char& byte : expected) byte = static_cast<char>(random());
    std::vector<char> actual = expected;
    CHECK(OnGpu(spec, {}, expected, actual).right());
    actual.back() = static_cast<char>(actual.back() + 1);
    CHECK_FALSE(OnGpu(spec, {}, expected, actual).right());
  }
}

TEST_CASE(
    "late words of copies on a GPU are other ones until they are given, and what they are copied from is as "
    "before") {
  const KeptIn where = GENERATE(KeptIn::kDevice, KeptIn::kHost);
  constexpr int64_t kBytes = int64_t{8} << 20;
  const TensorSpec spec = Spec(kInteger, 32, kBytes / 4);
  std::mt19937 random(7);
  const std::vector<char> numbers = Numbers(spec, &random, nullptr);
  const auto made = Store().Make(kBytes), to = Store().Make(2 * kBytes);
  REQUIRE((made.ok() && to.ok()));
  (*made)->Write(numbers.data(), 0, kBytes);
  const auto kept = Store().Keep(**made, 0, kBytes, where);
  REQUIRE(kept.ok());
  std::vector<LatePair> late;
  for (int64_t offset = 0; offset < kBytes / 2; offset += kBytes / 1000 / 8 * 8)
    late.push_back({offset, kBytes - 8 - offset});
  Store().Copy({{&*kept, 0, kBytes, late}, {&*kept, kBytes, kBytes, {{400, 0}}}}, to->get());
  std::vector<char> expected = numbers;
  for (const auto& [first, second] : late)
    std::swap_ranges(&expected[static_cast<size_t>(first)], &expected[static_cast<size_t>(first)] + 8,
                     &expected[static_cast<size_t>(second)]);
  CHECK(std::memcmp((*to)->Read(0, kBytes), expected.data(), kBytes) == 0);
  CHECK((*to)->IsSame(*kept, 8, kBytes + 8, 392));
  CHECK((*to)->IsSame(*kept, 0, kBytes + 400, 8));
  CHECK((*to)->IsSame(*kept, 400, kBytes, 8));
  CHECK(std::memcmp(kept->Read(0, kBytes), numbers.data(), kBytes) == 0);
  const auto longer_us = Store().GiveLateWords();
  REQUIRE(longer_us.ok());
  WARN("late words given in " << *longer_us << " us more than an idle probe");
  CHECK((*to)->IsSame(*kept, 0, 0, kBytes));
  CHECK((*to)->IsSame(*kept, 0, kBytes, kBytes));
  CHECK(Store().Health().ok());
}

TEST_CASE("a draw that is kept on the host is copied and compared as fast as the bus goes") {
  constexpr int64_t kBytes = int64_t{1} << 30;
  const auto seconds = [](const auto& work) {
    const absl::Time begin = absl::Now();
    work();
    Store().Settle();
    return absl::ToDoubleSeconds(absl::Now() - begin);
  };
  const auto made = Store().Make(kBytes);
  REQUIRE(made.ok());
  (*made)->Fill(1, 0, kBytes);
  std::vector<OwnTensors> kept;
  const double keeping = seconds([&] { kept.push_back(*Store().Keep(**made, 0, kBytes, KeptIn::kHost)); });
  (*made)->Fill(0, 0, kBytes);
  const double copying = seconds([&] {
    Store().Copy({{.from = kept.data(), .offset = 0, .num_bytes = kBytes, .late = {}}}, made->get());
  });
  bool same = false;
  const double comparing = seconds([&] { same = (*made)->IsSame(kept.front(), 0, 0, kBytes); });
  CHECK(same);
  WARN("1 GiB on the host: kept at " << 1.07 / keeping << ", copied back at " << 1.07 / copying
                                     << ", compared at " << 1.07 / comparing << " GB/s");
  CHECK(Store().Health().ok());
}

}  // namespace
}  // namespace warpsmith
