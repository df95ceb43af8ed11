// One secret draw of inputs with what the reference makes of them.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_DRAW_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_DRAW_H_

#include <memory>
#include <string>
#include <vector>

#include "reward_service/referee/comparison.h"
#include "reward_service/referee/shared_buffer.h"

namespace warpsmith {

struct Draw {
  std::unique_ptr<SharedBuffer> inputs;    // inputs and parameters, by TaskLayout
  std::unique_ptr<SharedBuffer> expected;  // by the outputs of TaskLayout; between them, nothing
  std::vector<Tolerance> tolerances;       // by output
  int parameter_seed = 0;
  bool own_distribution = true;  // as get_inputs() draws; else another magnitude or distribution
  std::string style;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_DRAW_H_
