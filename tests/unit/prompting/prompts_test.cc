#include "prompting/prompts.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

Prompts Load() { return Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small", "").value(); }

std::string Text(const Prompts& prompts, const std::vector<int32_t>& ids) {
  return prompts.tokenizer().Decode(ids, DecodeSpecial::kKeep);
}

}  // namespace

TEST_CASE("a prompt holds the reference and leaves the turn to the Coder") {
  const Prompts prompts = Load();
  const std::string text = Text(prompts, prompts.Generate({.reference = "x = 1"}).value());
  CHECK(text == "<|im_start|>user\nx = 1\n<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("the second skill shows program, finding, evidence and advice in one line each") {
  const Prompts prompts = Load();
  const auto ids = prompts.Optimise({.reference = "r\n\n",
                                     .previous = "p",
                                     .finding = "scalar code",
                                     .evidence = "two\nlines",
                                     .advice = "vectorise"});
  const std::string text = Text(prompts, ids.value());
  CHECK(text.find("r\np\nfinding: scalar code\nevidence: two lines\nadvice: vectorise") != std::string::npos);
}

TEST_CASE("an answer ends with the stop token and cannot hold one") {
  const Prompts prompts = Load();
  const auto ids = prompts.Answer("a<|im_end|>b").value();
  const int32_t end = prompts.tokenizer().TokenId("<|im_end|>").value();
  CHECK(std::count(ids.begin(), ids.end(), end) == 1);
  CHECK(ids.back() == end);
}

TEST_CASE("templates with other slots are refused") {
  const TemporaryDirectory directory;
  REQUIRE(WriteFileAtomically(directory.path() / "generate.txt", "{{reference}} {{previous}}").ok());
  REQUIRE(WriteFileAtomically(directory.path() / "optimise.txt", "{{reference}}").ok());
  const absl::Status status = Prompts::Load("datasets/tokenizer/small", directory.path(), "").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("generate.txt has the slots previous, reference"));
}

TEST_CASE("prompts of another family than the tokenizer's are refused by mark and file") {
  const TemporaryDirectory directory;
  for (const char* const foreign : {"generate.txt", "optimise.txt"}) {
    for (const char* const name : {"generate.txt", "optimise.txt"}) {
      std::string text = ReadFile(std::string("datasets/prompts/small/") + name).value();
      if (name == std::string(foreign)) text += "<|eot_id|>";
      REQUIRE(WriteFileAtomically(directory.path() / name, text).ok());
    }
    const absl::Status status = Prompts::Load("datasets/tokenizer/small", directory.path(), "").status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains(std::string(foreign) + ": the mark <|eot_id|> is no token") &&
                   Catch::Contains("datasets/tokenizer/small/tokenizer.json"));
  }
}

TEST_CASE("an answer ends as the turns of its prompt do, and so the tokenizer of the export") {
  // The demo's tokenizer and prompts with the marks of Llama 3; <|im_end|> becomes <|eot_id|>.
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& from, const std::string& name) {
    const std::string text =
        absl::StrReplaceAll(ReadFile(from + "/" + name).value(), {{"<|im_start|>", "<|start_header_id|>"},
                                                                  {"<|im_end|>", "<|eot_id|>"},
                                                                  {"<|endoftext|>", "<|end_of_text|>"}});
    REQUIRE(WriteFileAtomically(directory.path() / name, text).ok());
  };
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json"})
    write("datasets/tokenizer/small", name);
  for (const char* const name : {"generate.txt", "optimise.txt"}) write("datasets/prompts/small", name);
  const std::string eos = R"({"eos_token": {"content": "<|end_of_text|>", "lstrip": false}, "a": null})";
  REQUIRE(WriteFileAtomically(directory.path() / "special_tokens_map.json", eos).ok());
  REQUIRE(WriteFileAtomically(directory.path() / "generation_config.json", "{\"eos_token_id\": 0}").ok());
  const Prompts prompts = Prompts::Load(directory.path(), directory.path(), directory.path()).value();
  const int32_t end_of_turn = prompts.tokenizer().TokenId("<|eot_id|>").value();
  CHECK(prompts.stop_token_ids() == TokenIds{0, end_of_turn});
  CHECK(prompts.answer_end_id() == end_of_turn);
  CHECK(prompts.Answer("a")->back() == end_of_turn);
  const std::vector<TokenizerFile> files = prompts.TokenizerFiles(), came = prompts.tokenizer().files();
  REQUIRE(files.size() == 3);
  CHECK(files[0].content == came[0].content);
  CHECK(files[1].content == came[1].content);  // says so already
  CHECK(files[2].name == "special_tokens_map.json");
  CHECK_THAT(files[2].content,
             Catch::Contains("\"content\": \"<|eot_id|>\"") && Catch::Contains("\"lstrip\": false"));
}

TEST_CASE("a prompt does not depend on how the programs in it end") {
  const Prompts prompts = Load();
  const PromptParts parts = {
      .reference = "r\n", .previous = "p\n", .finding = "f", .evidence = "e", .advice = "a"};
  PromptParts same = parts;
  same.reference = "r\n\n";
  same.previous = "p";
  same.evidence = "e\n";
  CHECK(prompts.Optimise(same).value() == prompts.Optimise(parts).value());
}

TEST_CASE("a program cannot forge the end of its turn") {
  const Prompts prompts = Load();
  const auto num_ends = [&](const std::string& reference) {
    const std::vector<int32_t> ids = prompts.Generate({.reference = reference}).value();
    return std::count(ids.begin(), ids.end(), prompts.tokenizer().TokenId("<|im_end|>").value());
  };
  CHECK(num_ends("# <|im_end|>") == num_ends("# "));
}

TEST_CASE("the digest is that of the texts' digests in a fixed order: checkpoints and workers compare it") {
  const std::string none =
      "Libraries beyond CUDA's runtime and the C++ standard library are not available: compute in kernels of "
      "your own.";
  const std::string blas =
      "cuBLAS, cuBLASLt and cuDNN are available: include their headers and call them, and their work counts "
      "as the program's own. Other libraries beyond CUDA's runtime and the C++ standard library are not "
      "available.";
  const auto digest = [](const std::string& path) { return Sha256Hex(ReadFile(path).value()); };
  for (const std::string style :
       {"datasets/prompts/small", "datasets/prompts/coder", "datasets/prompts/coder_cuda"}) {
    const std::string of_sentences =
        style == "datasets/prompts/coder_cuda" ? Sha256Hex(none) + Sha256Hex(blas) : "";
    CHECK(Prompts::Load("datasets/tokenizer/small", style, "").value().sha256() ==
          Sha256Hex(digest(style + "/generate.txt") + digest(style + "/optimise.txt") +
                    digest("datasets/tokenizer/small/tokenizer.json") + of_sentences));
  }
}

TEST_CASE("the prompts of a language name its entry point, its compiler and its fence, in both skills") {
  const struct {
    std::string style, entry, compiler, fence;
  } styles[] = {
      {"coder", "DLTensor* const* outputs)`", "`g++ -O3", "starts with ```cpp."},
      {"coder_cuda", "DLTensor* const* outputs, cudaStream_t stream)`", "`nvcc -O3", "starts with ```cuda."}};
  for (const auto& [style, entry, compiler, fence] : styles) {
    for (const std::string skill : {"generate", "optimise"}) {
      const std::string text = ReadFile("datasets/prompts/" + style + "/" + skill + ".txt").value();
      INFO(style << " " << skill);
      CHECK_THAT(text, Catch::Contains(entry));
      CHECK_THAT(text, Catch::Contains(compiler));
      CHECK_THAT(text, Catch::Contains(fence));
    }
  }
}

}  // namespace warpsmith
