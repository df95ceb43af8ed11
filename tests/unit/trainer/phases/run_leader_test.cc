// Publication from a GPU made of the host, to a worker that says what it takes.
#include "trainer/phases/run_leader.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/host_id.h"
#include "core/model/model_fields.h"
#include "core/rpc/server.h"
#include "tests/support/catch.h"
#include "tests/unit/trainer/tiny_run.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

// A worker of this host that says it takes a GPU's memory, and refuses it where `takes_memory` is false.
struct Worker : v1::RolloutService::Service {
  explicit Worker(TinyRun* of) : run(of) {
    auto started = RpcServer::Start({}, {{.name = v1::RolloutService::service_full_name(), .service = this}});
    REQUIRE(started.ok());
    server = *std::move(started);
    for (const char* name : {v1::RolloutService::service_full_name(), ""}) {
      server->SetServing(name, Serving::kYes);
    }
  }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override {
    if (request->has_formula()) response->set_formula("kevin-v1");
    response->set_layout_sha256(run->policy().layout().Sha256());
    response->set_prompts_sha256(run->prompts().sha256());
    response->set_weights_dtype("bfloat16");
    response->set_cuda_memory_host(HostId());
    for (const auto& [name, value] : FieldsOf(TinyModel())) (*response->mutable_model_fields())[name] = value;
    return grpc::Status::OK;
  }

  grpc::Status PrepareWeights(grpc::ServerContext*, const v1::PrepareWeightsRequest* request,
                              v1::PrepareWeightsResponse*) override {
    transports.push_back(request->manifest().transport());
    if (transports.back() == "cuda_memory" && !takes_memory) {
      return {grpc::StatusCode::NOT_FOUND, "there is no such socket"};
    }
    return file_status;
  }

  grpc::Status CommitWeights(grpc::ServerContext*, const v1::CommitWeightsRequest* request,
                             v1::CommitWeightsResponse*) override {
    versions.push_back(request->policy_version());
    return grpc::Status::OK;
  }

  TinyRun* const run;
  bool takes_memory = true;
  grpc::Status file_status;
  std::vector<std::string> transports;
  std::vector<uint64_t> versions;
  std::unique_ptr<RpcServer> server;
};

struct Rig {
  Rig() {
    std::ofstream(directory.path() / "tasks.jsonl")
        << R"({"id": "a", "family": "f", "reference_source": "import torch", "split": "train"})"
        << "\n";
  }
  Configuration configuration() const {
    Configuration made;
    made.model.config = TinyModel();
    made.data.language = "cpp";
    made.data.train = made.data.held_out = directory.path() / "tasks.jsonl";
    made.trainer.publish_directory = directory.path();
    made.run.directory = directory.path() / "run";
    made.grpo.sampling.answer_tokens_max = 1;
    return made;
  }

  const TemporaryDirectory directory;
  TinyRun run{directory.path() / "run", configuration()};
  RunContext context = run.context();
  Worker worker{&run};
};

TEST_CASE("a worker that takes a GPU's memory is offered it, version by version") {
  Rig rig;
  auto leader = RunLeader::Create(&rig.context, {rig.worker.server->address()});
  INFO(leader.status());
  REQUIRE(leader.ok());
  CHECK((*leader)->Publish().ok());
  rig.context.progress.policy_version = 1;
  CHECK((*leader)->Publish().ok());
  CHECK(rig.worker.transports == std::vector<std::string>{"cuda_memory", "cuda_memory"});
  CHECK(rig.worker.versions == std::vector<uint64_t>{0, 1});
}

TEST_CASE("a worker that cannot take a GPU's memory gets that version, and those that follow, as a file") {
  Rig rig;
  rig.worker.takes_memory = false;
  auto leader = RunLeader::Create(&rig.context, {rig.worker.server->address()});
  INFO(leader.status());
  REQUIRE(leader.ok());
  CHECK((*leader)->Publish().ok());
  rig.context.progress.policy_version = 1;
  CHECK((*leader)->Publish().ok());
  REQUIRE(rig.worker.transports.size() == 3);
  CHECK(rig.worker.transports[0] == "cuda_memory");
  CHECK(rig.worker.transports[1] != "cuda_memory");
  CHECK(rig.worker.transports[2] == rig.worker.transports[1]);
  CHECK(rig.worker.versions == std::vector<uint64_t>{0, 1});
  // A worker that takes neither memory nor file is an error.
  rig.worker.file_status = {grpc::StatusCode::INVALID_ARGUMENT, "it is another model"};
  CHECK(absl::IsInvalidArgument((*leader)->Publish()));
}

}  // namespace
}  // namespace warpsmith
