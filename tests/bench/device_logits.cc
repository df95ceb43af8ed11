// Logits of a prompt by DeviceDecoder, for comparison with another implementation.
//
//   device_logits --model DIRECTORY --ids 1,2,3 --chunks N,M --out FILE [--dtype float16|float32]
//
// Computes the prompt in steps of N tokens, 1 being how answers are decoded, then anew in steps of M, and writes the
// logits of all rows: float32, [2, tokens, vocab_size]. `dtype` is what the decoder stores, bfloat16 otherwise. Prints
// a line of JSON. Pages lie in reverse order, so that a kernel which ignores the page table is found out.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/model/device_decoder.h"
#include "core/model/model_config.h"
#include "tests/gpu/device_array.h"

namespace warpsmith {
namespace {

constexpr int64_t kPageTokens = 16;
constexpr int64_t kPromptTokensMax = 1 << 16;

using DeviceInts = DeviceVector<int32_t>;

absl::Status CudaStatus(cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("CUDA: ", cudaGetErrorString(error)));
}

std::vector<int32_t> Range(int64_t first, int64_t count) {
  std::vector<int32_t> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(first + i);
  return values;
}

// The logits of `rows` rows, appended to `logits` without the columns that mean nothing.
absl::Status ReadLogits(const DeviceDecoder& decoder, int64_t rows, int64_t columns,
                        std::vector<float>& logits) {
  const size_t size = logits.size();
  logits.resize(size + rows * columns);
  return CudaStatus(cudaMemcpy2D(logits.data() + size, columns * sizeof(float), decoder.logits(),
                                 decoder.logits_stride() * sizeof(float), columns * sizeof(float), rows,
                                 cudaMemcpyDeviceToHost));
}

// The tokens [first, first + rows) of `ids`, after those before them.
absl::Status RunChunk(DeviceDecoder& decoder, const std::vector<int32_t>& ids, int64_t first, int64_t rows,
                      const std::vector<int32_t>& pages, cudaStream_t stream) {
  const int64_t num_pages = (first + rows + kPageTokens - 1) / kPageTokens;
  std::vector<int32_t> entries(rows);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t position = first + i;
    entries[i] = static_cast<int32_t>(pages[position / kPageTokens] * kPageTokens + position % kPageTokens);
  }
  const DeviceInts row_indptr({0, static_cast<int32_t>(rows)});
  const DeviceInts page_indptr({0, static_cast<int32_t>(num_pages)});
  const DeviceInts page_indices(std::vector<int32_t>(pages.begin(), pages.begin() + num_pages));
  const DeviceInts token_ids(std::vector<int32_t>(ids.begin() + first, ids.begin() + first + rows));
  const DeviceInts token_slots(std::vector<int32_t>(rows, 0));
  const DeviceInts last_tokens({0});
  const DeviceInts positions(Range(first, rows));
  const DeviceInts kv_entries(entries);
  const DeviceInts logits_rows(Range(0, rows));
  RETURN_IF_ERROR(decoder.Launch({.num_queries = 1,
                                  .num_rows = rows,
                                  .num_logits_rows = rows,
                                  .rows_of_query_max = rows,
                                  .row_indptr = row_indptr.get(),
                                  .page_indptr = page_indptr.get(),
                                  .page_indices = page_indices.get(),
                                  .token_ids = token_ids.get(),
                                  .token_slots = token_slots.get(),
                                  .last_tokens = last_tokens.get(),
                                  .positions = positions.get(),
                                  .kv_entries = kv_entries.get(),
                                  .logits_rows = logits_rows.get()},
                                 stream));
  return CudaStatus(cudaStreamSynchronize(stream));  // before the arrays above are freed
}

absl::StatusOr<std::vector<int32_t>> ParseIds(const std::string& text, int64_t vocab_size) {
  std::vector<int32_t> ids;
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  for (const std::string& word : words) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0 || id >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("--ids wants token ids below ", vocab_size, ", not '", word, "'"));
    }
    ids.push_back(id);
  }
  if (static_cast<int64_t>(ids.size()) > kPromptTokensMax) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kPromptTokensMax, " ids, not ", ids.size()));
  }
  return ids;
}

absl::StatusOr<std::vector<int64_t>> ParseChunks(const std::string& text) {
  std::vector<int64_t> chunks;
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  for (const std::string& word : words) {
    int64_t chunk = 0;
    if (!absl::SimpleAtoi(word, &chunk) || chunk < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--chunks wants numbers from 1 on, not '", word, "'"));
    }
    chunks.push_back(chunk);
  }
  return chunks;
}

absl::StatusOr<DeviceDtype> ParseDtype(const std::string& text) {
  if (text.empty()) return DeviceDtype::kBfloat16;
  for (const DeviceDtype dtype : {DeviceDtype::kBfloat16, DeviceDtype::kFloat16, DeviceDtype::kFloat32}) {
    if (text == DtypeName(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--dtype wants bfloat16, float16 or float32, not '", text, "'"));
}

absl::Status Run(std::map<std::string, std::string> flags) {
  ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(flags["--model"]));
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ParseIds(flags["--ids"], config.vocab_size));
  const int64_t num_tokens = static_cast<int64_t>(ids.size());
  ASSIGN_OR_RETURN(const std::vector<int64_t> chunks, ParseChunks(flags["--chunks"]));
  ASSIGN_OR_RETURN(const DeviceDtype dtype, ParseDtype(flags["--dtype"]));
  const int64_t num_pages = (num_tokens + kPageTokens - 1) / kPageTokens;
  // The same options whatever the chunk: with one bucket a row's bits must not depend on it.
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceDecoder> decoder,
                   DeviceDecoder::Create(config, {.dtype = dtype,
                                                  .num_pages = num_pages,
                                                  .page_tokens = kPageTokens,
                                                  .rows_max = num_tokens,
                                                  .logits_rows_max = num_tokens,
                                                  .context_tokens_max = num_tokens,
                                                  .row_buckets = {num_tokens}}));
  RETURN_IF_ERROR(decoder->LoadHuggingFace(flags["--model"]));
  std::vector<int32_t> pages = Range(0, num_pages);
  std::reverse(pages.begin(), pages.end());

  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(CudaStatus(cudaStreamCreate(&stream)));
  std::vector<float> logits;
  for (const int64_t chunk : chunks) {
    for (int64_t first = 0; first < num_tokens; first += chunk) {
      const int64_t rows = std::min(chunk, num_tokens - first);
      RETURN_IF_ERROR(RunChunk(*decoder, ids, first, rows, pages, stream));
      RETURN_IF_ERROR(ReadLogits(*decoder, rows, config.vocab_size, logits));
    }
  }
  RETURN_IF_ERROR(CudaStatus(cudaStreamDestroy(stream)));

  std::ofstream out(flags["--out"], std::ios::binary);
  out.write(reinterpret_cast<const char*>(logits.data()),
            static_cast<std::streamsize>(logits.size() * sizeof(float)));
  if (!out.flush()) return absl::InternalError(absl::StrCat("could not write '", flags["--out"], "'"));
  std::cout << nlohmann::json{{"name", "logits"},
                              {"dtype", DtypeName(dtype)},
                              {"tokens", num_tokens},
                              {"vocab_size", config.vocab_size}}
            << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  const absl::Status status = warpsmith::Run(std::move(flags));
  if (!status.ok()) std::cerr << "device_logits: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
