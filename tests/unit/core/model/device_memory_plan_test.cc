#include "core/model/device_memory_plan.h"

#include <limits>
#include <string>

#include "core/model/staging_plan.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

ModelConfig Qwen3Of8B() {
  ModelConfig config;
  config.vocab_size = 151936;
  config.hidden_size = 4096;
  config.intermediate_size = 12288;
  config.num_hidden_layers = 36;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  return config;
}

DeviceDecoderOptions Options() {
  return {.num_pages = 100,
          .rows_max = 64,
          .logits_rows_max = 20,
          .context_tokens_max = 512,
          .num_token_ids = 151669,
          .row_buckets = {1, 8, 64}};
}

std::string ErrorOf(const ModelConfig& config, const DeviceDecoderOptions& options) {
  return std::string(CheckDeviceDecoderOptions(config, options).message());
}

}  // namespace

TEST_CASE("a model of 8B takes the bytes that its paper arithmetic says") {
  const ModelConfig config = Qwen3Of8B();
  CHECK(CheckDeviceDecoderOptions(config, Options()).ok());
  CHECK(LogitsStride(config, 151669) == 151680);
  CHECK(LogitsStride(config, 0) == 151936);
  CHECK(EntryElements(config) == 8 * 128);
  CHECK(PageBytes(config, 16, DeviceDtype::kBfloat16) == int64_t{2} * 36 * 16 * 1024 * 2);
  CHECK(PlaneElements(config, Options()) == 100 * 16 * 1024);
  const ParameterLayout layout(config);
  CHECK(WeightElements(layout) >= BufferOffsets(layout).back() + 16 * 4096);
}

TEST_CASE("regions of a step follow one another, aligned, and are as large as their rows") {
  const ModelConfig config = Qwen3Of8B();
  const DeviceScratch scratch = PlaceScratch(config, Options(), 1000);
  const std::vector<int64_t> begins = {
      scratch.x,       scratch.normed,    scratch.qkv,      scratch.queries,     scratch.attended,
      scratch.gate_up, scratch.activated, scratch.last,     scratch.last_normed, scratch.logits,
      scratch.cosines, scratch.sines,     scratch.products, scratch.attention,   scratch.bytes};
  const std::vector<int64_t> sizes = {
      64 * 4096 * 2,  64 * 4096 * 2,  64 * 6144 * 2, 64 * 4096 * 2, 64 * 4096 * 2,
      64 * 24576 * 2, 64 * 12288 * 2, 20 * 4096 * 2, 20 * 4096 * 2, 20 * 151680 * 4,
      512 * 64 * 4,   512 * 64 * 4,   32 << 20,      1000};
  for (size_t i = 0; i < sizes.size(); ++i) {
    INFO("region " << i);
    CHECK(begins[i] % 256 == 0);
    CHECK(begins[i + 1] - begins[i] >= sizes[i]);
    CHECK(begins[i + 1] - begins[i] < sizes[i] + 256);
  }
}

TEST_CASE("float32 takes twice the bytes of bfloat16, but for logits and tables") {
  const ModelConfig config = Qwen3Of8B();
  DeviceDecoderOptions options = Options();
  options.dtype = DeviceDtype::kFloat32;
  CHECK(CheckDeviceDecoderOptions(config, options).ok());
  CHECK(PageBytes(config, 16, DeviceDtype::kFloat32) == 2 * PageBytes(config, 16, DeviceDtype::kBfloat16));
  const DeviceScratch wide = PlaceScratch(config, options, 0), narrow = PlaceScratch(config, Options(), 0);
  CHECK(wide.logits == 2 * narrow.logits);  // all that lies before
  CHECK(wide.bytes - wide.logits == narrow.bytes - narrow.logits);
  options.shard = {1, 2};
  const DeviceScratch shard = PlaceScratch(ShardConfig(config, 2), options, 0);
  CHECK(shard.last - shard.partials == 2 * 64 * 4096 * 4);
}

TEST_CASE("a shard has a part of what is cut, and room for the sums of all") {
  const ModelConfig config = Qwen3Of8B(), part = ShardConfig(config, 4);
  DeviceDecoderOptions options = Options();
  options.shard = {3, 4};
  CHECK(CheckDeviceDecoderOptions(config, options).ok());
  const DeviceScratch scratch = PlaceScratch(part, options, 1000),
                      whole = PlaceScratch(config, Options(), 1000);
  CHECK(scratch.last - scratch.partials == 4 * 64 * 4096 * 2);
  CHECK(whole.last == whole.partials);
  CHECK(4 * (scratch.activated - scratch.gate_up) == whole.activated - whole.gate_up);
  CHECK(4 * PageBytes(part, 16, DeviceDtype::kBfloat16) == PageBytes(config, 16, DeviceDtype::kBfloat16));
  CHECK(BufferOffsets(ParameterLayout(part)).back() < BufferOffsets(ParameterLayout(config)).back());
  options.shard = {0, 3};
  CHECK_THAT(ErrorOf(config, options), Catch::Contains("give 1, 2, 4, 8 GPUs"));
}

TEST_CASE("the head's buckets end at its rows") {
  DeviceDecoderOptions options = Options();
  CHECK(LogitsRowBuckets(options) == std::vector<int64_t>{1, 8, 20});
  options.logits_rows_max = 8;
  CHECK(LogitsRowBuckets(options) == std::vector<int64_t>{1, 8});
  options.row_buckets = {64};
  CHECK(LogitsRowBuckets(options) == std::vector<int64_t>{8});
}

TEST_CASE("what does not fit says what is wanted and what is free") {
  CHECK(CheckFits("pages", 100, {0, 100, 200}).ok());
  const absl::Status status = CheckFits("pages", int64_t{3} << 30, {2, int64_t{1} << 30, int64_t{80} << 30});
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(status.message()) ==
        "decoder on a GPU: pages want 3.00 GiB, and GPU 2 has 1.00 of its 80.00 GiB "
        "free: ask "
        "for fewer pages or rows, or end what else is on it");
}

TEST_CASE("an option that is out of range is refused by name") {
  const ModelConfig config = Qwen3Of8B();
  const auto error = [&](auto change) {
    DeviceDecoderOptions options = Options();
    change(options);
    return ErrorOf(config, options);
  };
  const auto names = [](const std::string& text, const char* name) {
    return text.find(name) != std::string::npos;
  };
  CHECK(names(error([](auto& o) { o.num_pages = 0; }), "num_pages is 0"));
  CHECK(names(error([](auto& o) { o.num_pages = int64_t{1} << 31; }), "num_pages is 2147483648"));
  CHECK(names(error([](auto& o) { o.page_tokens = 8; }), "page_tokens is 8"));
  CHECK(names(error([](auto& o) { o.page_tokens = 0; }), "page_tokens is 0"));
  CHECK(names(error([](auto& o) { o.rows_max = 0; }), "rows_max is 0"));
  CHECK(names(error([](auto& o) { o.logits_rows_max = 65; }), "logits_rows_max is 65"));
  CHECK(names(error([](auto& o) { o.context_tokens_max = 0; }), "context_tokens_max is 0"));
  CHECK(names(error([](auto& o) { o.num_token_ids = 151937; }), "num_token_ids is 151937"));
  for (const std::vector<int64_t>& buckets :
       std::vector<std::vector<int64_t>>{{}, {1, 63}, {8, 8, 64}, {8, 1, 64}, {0, 64}}) {
    CHECK(names(error([&](auto& o) { o.row_buckets = buckets; }), "row_buckets are ["));
  }
}

TEST_CASE("a model that no kernel computes is unimplemented") {
  const auto code = [](auto change) {
    ModelConfig config = Qwen3Of8B();
    change(config);
    return CheckDeviceDecoderOptions(config, Options()).code();
  };
  CHECK(code([](auto& c) { c.head_dim = 96; }) == absl::StatusCode::kUnimplemented);
  CHECK(code([](auto& c) { c.num_key_value_heads = 1; }) == absl::StatusCode::kUnimplemented);
  CHECK(code([](auto& c) { c.hidden_size = 4100; }) == absl::StatusCode::kUnimplemented);
  CHECK(code([](auto& c) { c.hidden_size = 0; }) == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("bounds on the rows of a query are powers of two, or all rows") {
  CHECK(RowsOfQueryBound(1, 100) == 1);
  CHECK(RowsOfQueryBound(2, 100) == 2);
  CHECK(RowsOfQueryBound(33, 100) == 64);
  CHECK(RowsOfQueryBound(65, 100) == 100);
}

TEST_CASE("whole buckets of few rows are streamed") {
  CHECK(StreamedRowsMax({1, 8, 64, 128}) == 64);
  CHECK(StreamedRowsMax({1, 48, 100}) == 48);
  CHECK(StreamedRowsMax({128}) == 0);
}

TEST_CASE("buckets that are streamed need no plans") {
  CHECK(BucketsBeyond({1, 8, 64, 128, 200}, 64) == std::vector<int64_t>{128, 200});
  CHECK(BucketsBeyond({1, 8}, 8).empty());
  CHECK(BucketsBeyond({128}, 0) == std::vector<int64_t>{128});
}

}  // namespace warpsmith
