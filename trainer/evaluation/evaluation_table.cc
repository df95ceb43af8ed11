#include "trainer/evaluation/evaluation_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

using nlohmann::ordered_json;

struct Block {
  const char* label;
  const char* place;  // in the JSON of an evaluation
};
constexpr Block kBlocks[] = {{"both skills", ""},
                             {"generate", "/by_skill/generate"},
                             {"optimise", "/by_skill/optimise"},
                             {"greedy", "/greedy"},
                             {"unseen operator", "/unseen_operator"}};

struct Figure {
  const char* label;
  const char* key;
};
constexpr Figure kFigures[] = {{"compile", "compile_rate"},
                               {"correct", "correct_rate"},
                               {"fast_1", "fast_1"},
                               {"speed-up", "geomean_speedup"},
                               {"reward", "mean_reward"}};

// Null where a column lacks the block, as an evaluation of an older version may.
using Cells = std::vector<const ordered_json*>;

Cells CellsOf(const Block& block, const std::vector<EvaluationColumn>& columns) {
  const ordered_json::json_pointer place(block.place);
  Cells cells;
  for (const EvaluationColumn& column : columns) {
    cells.push_back(column.json->contains(place) ? &column.json->at(place) : nullptr);
  }
  return cells;
}

int CountOf(const ordered_json* section, const char* key) {
  return section == nullptr ? 0 : section->value(key, 0);
}

int MostOf(const Cells& cells, const char* key) {
  int most = 0;
  for (const ordered_json* cell : cells) most = std::max(most, CountOf(cell, key));
  return most;
}

std::string FigureText(const ordered_json* section, const std::string& key) {
  const ordered_json none;
  const ordered_json value = section == nullptr ? none : section->value(key, none);
  if (!value.is_number()) return "-";
  const std::string text = absl::StrFormat("%.3f", value.get<double>());
  const ordered_json interval = section->value(key + "_interval", none);
  if (interval.size() != 2 || !interval[0].is_number() || !interval[1].is_number()) return text;
  return absl::StrFormat("%s [%.2f, %.2f]", text, interval[0].get<double>(), interval[1].get<double>());
}

std::string UnscoredText(const ordered_json* section) {
  return absl::StrCat(CountOf(section, "num_unscored"), " of ", CountOf(section, "num_answers"));
}

template <typename Text>
std::string Line(const std::string& block, const std::string& label, const Cells& cells, const Text& text) {
  std::string line = absl::StrFormat("%-16s%-10s", block, label);
  for (const ordered_json* cell : cells) absl::StrAppendFormat(&line, "%24s", text(cell));
  return line + "\n";
}

std::string BlockText(const Block& block, const Cells& cells) {
  std::string text, label = block.label;
  for (const Figure& figure : kFigures) {
    const auto value = [&](const ordered_json* cell) { return FigureText(cell, figure.key); };
    text += Line(label, figure.label, cells, value);
    label.clear();
  }
  if (MostOf(cells, "num_unscored") > 0) text += Line("", "unscored", cells, UnscoredText);
  return text;
}

}  // namespace

std::string EvaluationTable(const std::vector<EvaluationColumn>& columns) {
  std::string table = absl::StrFormat("%-26s", "held-out tasks");
  for (const EvaluationColumn& column : columns) absl::StrAppendFormat(&table, "%24s", column.name);
  table += "\n";
  for (const Block& block : kBlocks) {
    const Cells cells = CellsOf(block, columns);
    if (MostOf(cells, "num_answers") > 0) table += BlockText(block, cells);
  }
  return table +
         "Of scored programs, with 95 % intervals; the speed-up is the geometric mean of\n"
         "correct ones.\n";
}

}  // namespace warpsmith
