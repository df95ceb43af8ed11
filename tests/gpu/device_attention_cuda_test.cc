#include "core/model/device_attention_cuda.h"

#include "core/kernels/paged_attention_cuda.h"
#include "core/model/device_memory_plan.h"
#include "tests/support/catch.h"
#include "tests/support/device_decoder_fixture.h"

namespace warpsmith {

TEST_CASE("the workspace holds what attention wants for every step that the options allow") {
  const ModelConfig config = DeviceFamilyConfigs()[1].config;
  const DeviceDecoderOptions options = SmallOptions({48});
  const int64_t bytes = AttentionWorkspaceBytes(config, options);
  for (int64_t rows = 1; rows <= 48; ++rows) {
    for (int64_t of_query = rows <= options.logits_rows_max ? 1 : 2; of_query <= rows; ++of_query) {
      const PagedAttentionBounds bounds = {RowsOfQueryBound(of_query, 48), options.context_tokens_max};
      CHECK(bytes >= static_cast<int64_t>(PagedAttentionWorkspaceBytes(
                         rows, config.num_key_value_heads, config.group_size(), config.head_dim, bounds)));
    }
  }
}

}  // namespace warpsmith
