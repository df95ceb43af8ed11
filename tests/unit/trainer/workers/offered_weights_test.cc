// Weights that a publisher offers in the memory of a GPU made of the host.
#include "core/model/mapped_weights_cuda.h"
#include "core/model/model_fields.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/trainer/policy_batch.h"
#include "tests/unit/trainer/tiny_trainer.h"
#include "trainer/workers/weight_publisher.h"

namespace warpsmith {

TEST_CASE(
    "what is offered can be mapped by what the manifest says, and each version takes the place of the one "
    "before") {
  const TemporaryDirectory directory;
  const auto trainer = MakeTinyTrainer(ParameterLayout(TinyModel()));
  WeightPublisher publisher(directory.path(), "runs/a");
  for (uint64_t version = 1; version <= 2; ++version) {
    const auto published = publisher.Offer(*trainer, version);
    INFO(published.status());
    REQUIRE(published.ok());
    CHECK(published->transport == "cuda_memory");
    CHECK(published->dtype == "bfloat16");
    CHECK(published->policy_version == version);
    CHECK(published->model_fields == FieldsOf(TinyModel()));
    OfferedMemory offered{
        .socket_path = published->path, .version = version, .layout_sha256 = published->layout_sha256};
    for (const PublishedBuffer& buffer : published->buffers) {
      offered.buffers.push_back({buffer.name, buffer.offset_bytes, buffer.length_bytes, buffer.checksum});
    }
    const auto mapped = MappedWeights::Open(TinyModel(), offered, 0, absl::Now() + absl::Seconds(20));
    INFO(mapped.status());
    CHECK(mapped.ok());
    offered.version = version + 1;
    CHECK_FALSE(MappedWeights::Open(TinyModel(), offered, 0, absl::Now() + absl::Seconds(20)).ok());
    const PolicyUpdateOptions options = MakeOptions();
    const auto control = MakeLoneControlPlane();
    const auto communicator = MakeLoneCommunicator(*control);
    REQUIRE(UpdatePolicy(*trainer, MakeBatch(), options, *communicator, *control).ok());
  }
}

}  // namespace warpsmith
