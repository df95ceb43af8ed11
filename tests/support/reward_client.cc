#include "tests/support/reward_client.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"

namespace warpsmith {

RewardClient::RewardClient(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = {
      "--address", absl::StrCat("unix:", (folder_.path() / "socket").string()), "--log-level", "warning"};
  std::vector<std::string> all = {absl::StrCat("cache_directory=", (folder_.path() / "cache").string()),
                                  "call_seconds_max=1", "lane_seconds_max=4"};
  all.insert(all.end(), settings.begin(), settings.end());
  for (const std::string& setting : all) {
    arguments.push_back("--set");
    arguments.push_back(absl::StrCat("reward_service.", setting));
  }
  process_ = std::make_unique<ServerProcess>("warpsmith-reward", arguments);
  stub_ = v1::RewardService::NewStub(CreateChannel(process_->address()));
}

absl::StatusOr<v1::Grade> RewardClient::Grade(v1::GradeRequest request, absl::Duration limit) {
  ++num_requests_;
  if (request.request_id().empty()) request.set_request_id(absl::StrCat("request-", num_requests_));
  grpc::ClientContext context;
  SetTimeout(&context, limit);
  v1::GradeResponse response;
  const grpc::Status status = stub_->Grade(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response.grade();
}

std::string ReluSquareReference(int rows) {
  return absl::StrCat(
      "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
      "        return torch.relu(2 * x + 1) ** 2\n\ndef get_inputs():\n    return [torch.randn(",
      rows, ", 256)]\n\ndef get_init_inputs():\n    return []\n");
}

v1::GradeRequest CppAnswer(const std::string& reference, const std::string& answer) {
  v1::GradeRequest request;
  request.mutable_task()->set_id("test");
  request.mutable_task()->set_skill(v1::SKILL_GENERATE);
  request.mutable_task()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  request.mutable_task()->set_reference_source(reference);
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  request.mutable_candidate()->set_answer(answer);
  return request;
}

v1::GradeRequest CppBody(const std::string& reference, const std::string& statements,
                         const std::string& head) {
  return CppAnswer(
      reference,
      absl::StrCat("```cpp\n#include <dlpack/dlpack.h>\n#include <cmath>\n#include <cstdint>\n", head,
                   "\nextern \"C\" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, "
                   "DLTensor* const* outputs) {\n  const float* x = (const float*)inputs[0]->data;\n"
                   "  float* y = (float*)outputs[0]->data;\n"
                   "  int64_t n = outputs[0]->shape[0] * outputs[0]->shape[1];\n",
                   statements, "\n  return 0;\n}\n```\n"));
}

v1::GradeRequest PythonAnswer(const std::string& reference, const std::string& program) {
  v1::GradeRequest request = CppAnswer(reference, absl::StrCat("```python\n", program, "\n```\n"));
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  return request;
}

}  // namespace warpsmith
