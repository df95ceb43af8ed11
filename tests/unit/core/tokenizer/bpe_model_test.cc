#include "core/tokenizer/bpe_model.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// A model over the 256 bytes and the products of `merges`, whose ids follow in order.
struct TestModel {
  explicit TestModel(const std::vector<std::pair<std::string, std::string>>& merges,
                     WholePieces whole_pieces = WholePieces::kByMerges) {
    for (int byte = 0; byte < 256; ++byte) ids[std::string(1, static_cast<char>(byte))] = byte;
    for (const auto& [left, right] : merges) {
      const auto id = static_cast<int32_t>(ids.size());
      rules.push_back({ids.at(left), ids.at(right), ids.emplace(left + right, id).first->second});
    }
    model.emplace(BpeModel::Create(ids, rules, whole_pieces).value());
  }

  std::vector<int32_t> Encode(const std::string& piece) const {
    std::vector<int32_t> encoded;
    model->Encode(piece, &encoded);
    return encoded;
  }

  absl::flat_hash_map<std::string, int32_t> ids;
  std::vector<BpeMerge> rules;
  std::optional<BpeModel> model;
};

// BPE as its definition says: the lowest rank first, the leftmost of equals, until no rule applies.
std::vector<int32_t> EncodeSlowly(const std::string& piece, const std::vector<BpeMerge>& rules) {
  std::vector<int32_t> ids;
  for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  std::map<std::pair<int32_t, int32_t>, size_t> ranks;
  for (size_t rank = 0; rank < rules.size(); ++rank) ranks[{rules[rank].left, rules[rank].right}] = rank;
  while (true) {
    size_t best = rules.size(), place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find({ids[i], ids[i + 1]});
      if (found != ranks.end() && found->second < best) {
        best = found->second;
        place = i;
      }
    }
    if (best == rules.size()) return ids;
    ids[place] = rules[best].product;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

}  // namespace

TEST_CASE("the lowest rank is merged first, the leftmost of equals") {
  const TestModel test({{"b", "c"}, {"a", "b"}, {"a", "a"}});
  CHECK(test.Encode("abc") == std::vector<int32_t>{'a', 256});
  CHECK(test.Encode("aaa") == std::vector<int32_t>{258, 'a'});
  CHECK(test.Encode("x") == std::vector<int32_t>{'x'});
  CHECK(test.Encode("").empty());
}

TEST_CASE("a whole piece that is a token is taken at once only if the tokenizer says so") {
  // "abc" is a token, but b and c merge before a and b could.
  const std::vector<std::pair<std::string, std::string>> merges = {{"b", "c"}, {"a", "b"}, {"ab", "c"}};
  CHECK(TestModel(merges).Encode("abc") == std::vector<int32_t>{'a', 256});
  CHECK(TestModel(merges, WholePieces::kAtOnce).Encode("abc") == std::vector<int32_t>{258});
  CHECK(TestModel(merges, WholePieces::kAtOnce).Encode("abcb") == std::vector<int32_t>{'a', 256, 'b'});
}

TEST_CASE("random rules over random pieces give what the definition gives") {
  for (uint64_t round = 0; round < 60; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> merges;
    for (uint64_t i = 0; i < 12; ++i) {
      const std::string left = tokens[UniformWord(round, 2 * i) % tokens.size()];
      const std::string right = tokens[UniformWord(round, 2 * i + 1) % tokens.size()];
      if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
      merges.emplace_back(left, right);
      tokens.push_back(left + right);
    }
    const TestModel test(merges);
    for (uint64_t piece_number = 0; piece_number < 30; ++piece_number) {
      std::string piece;
      for (uint64_t i = 0; i < piece_number; ++i) {
        piece.push_back(static_cast<char>('a' + UniformWord(round * 1000 + piece_number, i) % 3));
      }
      INFO("round " << round << ", piece " << piece);
      CHECK(test.Encode(piece) == EncodeSlowly(piece, test.rules));
    }
  }
}

TEST_CASE("a vocabulary without a byte is refused and the byte is named") {
  absl::flat_hash_map<std::string, int32_t> ids;
  for (int byte = 0; byte < 255; ++byte) ids[std::string(1, static_cast<char>(byte))] = byte;
  const auto model = BpeModel::Create(ids, {}, WholePieces::kByMerges);
  CHECK(absl::IsInvalidArgument(model.status()));
  CHECK(model.status().message().find("byte 255") != absl::string_view::npos);
}

TEST_CASE("a piece of a million bytes is merged in reasonable time") {
  const TestModel test({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  CHECK(test.Encode(std::string(1 << 20, 'a')).size() == (1 << 20) / 8);
}

}  // namespace warpsmith
