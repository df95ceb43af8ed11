// warpsmith-hash-grader: a real RewardService process whose Grade is a hash of the answer. For tests of the
// trainer and of the workers that must repeat to the bit; it is built with the tests and never installed.
//
//   warpsmith-hash-grader [--address 127.0.0.1:0] [--delay-ms 0]
//
// Prints "listening on ADDRESS" to standard output once it serves, and stops at SIGTERM or SIGINT.
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "core/base/stop_signals.h"
#include "tests/support/hash_grade.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {
namespace {

constexpr int kMessageBytesMax = 32 << 20;

class HashGrader final : public v1::RewardService::Service {
 public:
  explicit HashGrader(std::chrono::milliseconds delay) : delay_(delay) {}

  grpc::Status Grade(grpc::ServerContext*, const v1::GradeRequest* request,
                     v1::GradeResponse* response) override {
    std::this_thread::sleep_for(delay_);
    *response = HashGradeResponse(*request);
    return grpc::Status::OK;
  }

  grpc::Status GradeBatch(grpc::ServerContext*,
                          grpc::ServerReaderWriter<v1::GradeResponse, v1::GradeRequest>* stream) override {
    v1::GradeRequest request;
    while (stream->Read(&request)) {
      std::this_thread::sleep_for(delay_);
      if (!stream->Write(HashGradeResponse(request))) break;
    }
    return grpc::Status::OK;
  }

  grpc::Status GetCapabilities(grpc::ServerContext*, const v1::GetCapabilitiesRequest*,
                               v1::GetCapabilitiesResponse* response) override {
    v1::Capabilities* capabilities = response->mutable_capabilities();
    capabilities->add_languages(v1::CANDIDATE_LANGUAGE_CPP);
    capabilities->add_languages(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
    capabilities->add_formulas("hash-of-answer");
    capabilities->set_default_formula("hash-of-answer");
    capabilities->add_devices(v1::DEVICE_CPU);
    capabilities->set_num_lanes(1);
    capabilities->set_queue_capacity(1024);
    capabilities->set_answer_bytes_max(kMessageBytesMax);
    return grpc::Status::OK;
  }

 private:
  const std::chrono::milliseconds delay_;
};

int Serve(const std::string& address, std::chrono::milliseconds delay) {
  const sigset_t signals = BlockStopSignals();
  HashGrader service(delay);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "cannot listen on " << address << ": choose another --address\n";
    return 1;
  }
  const bool is_socket = address.rfind("unix:", 0) == 0;
  const std::string bound =
      is_socket ? address : address.substr(0, address.rfind(':') + 1) + std::to_string(port);
  std::cout << "listening on " << bound << std::endl;
  AwaitStopSignal(signals);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  CLI::App app("RewardService whose Grade is a hash of the answer");
  std::string address = "127.0.0.1:0";
  int delay_ms = 0;
  app.add_option("--address", address, "host:port (port 0: any) or unix:path");
  app.add_option("--delay-ms", delay_ms, "time that each Grade takes")->check(CLI::Range(0, 60000));
  CLI11_PARSE(app, argc, argv);
  return warpsmith::Serve(address, std::chrono::milliseconds(delay_ms));
}
