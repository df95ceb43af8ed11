#include "tests/bench/device_group_step.h"

#include <barrier>
#include <cstdio>
#include <sstream>
#include <thread>

#include "core/distributed/nccl_device_group_cuda.h"
#include "tests/bench/decode_step.h"
#include "tests/gpu/device_rate.h"

namespace warpsmith {
namespace {

constexpr int kStepsOfRound = 20, kRounds = 5;

// What one GPU measured.
struct RankTimes {
  double step_ms = 0;
  double exchange_ms = 0;  // all exchanges of a step
  double bytes = 0;
  double copy_rate = 0;  // GB/s
};

// Steps of one GPU, by its own thread; all meet where one must not run ahead.
class GroupRank {
 public:
  GroupRank(int device, int rank, NcclDeviceGroup& group, std::barrier<>& meeting)
      : device_(device), rank_(rank), group_(group), meeting_(meeting) {}

  RankTimes Run(const std::string& model, int64_t sequences, int64_t context, bool whole) {
    Check(cudaSetDevice(device_), "device");
    const ModelConfig config = ShapeOf(model);
    DeviceDecoderOptions options = OptionsOf(sequences, context, whole);
    options.device = device_;
    options.shard = {rank_, group_.size()};
    absl::StatusOr<std::unique_ptr<DeviceDecoder>> decoder = DeviceDecoder::Create(config, options);
    Check(decoder.status());
    FillForBench(**decoder);
    DecodeStep arrays(config, options, sequences, context);
    if (rank_ > 0) arrays.step.num_logits_rows = 0;
    const PartialsExchange exchange = [this](std::byte* partials, int64_t bytes, cudaStream_t stream) {
      return group_.AllGather(rank_, partials, bytes, stream);
    };
    arrays.step.exchange = &exchange;
    const int64_t bytes = sequences * config.hidden_size * ElementBytes(options.dtype);
    const DeviceVector<std::byte> partials(std::vector<std::byte>(group_.size() * bytes));

    RankTimes times{.bytes = BytesOfStep(**decoder, sequences, context),
                    .copy_rate = 0x1p30 / CopySeconds(1 << 30) * 1e-9};
    if (rank_ > 0) times.bytes -= 2.0 * static_cast<double>(config.vocab_size * config.hidden_size);
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    times.step_ms = Milliseconds([&] { Check((*decoder)->Launch(arrays.step, stream_)); });
    times.exchange_ms = Milliseconds([&] {
      for (int64_t call = 0; call < 2 * config.num_hidden_layers; ++call)
        Check(exchange(partials.get(), bytes, stream_));
    });
    cudaStreamDestroy(stream_);
    meeting_.arrive_and_wait();
    return times;
  }

 private:
  // Of what `launch` puts on the stream, as a graph, in a row of them; the median of the rounds.
  double Milliseconds(const std::function<void()>& launch) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    meeting_.arrive_and_wait();
    launch();
    Check(cudaStreamSynchronize(stream_), "the first launch");
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    launch();
    Check(cudaStreamEndCapture(stream_, &graph), "capture");
    Check(cudaGraphInstantiate(&ready, graph, 0), "graph");
    cudaEvent_t begin = nullptr, end = nullptr;
    Check(cudaEventCreate(&begin), "event");
    Check(cudaEventCreate(&end), "event");
    std::vector<float> rounds(kRounds);
    for (float& elapsed : rounds) {
      meeting_.arrive_and_wait();
      Check(cudaGraphLaunch(ready, stream_), "graph");
      Check(cudaEventRecord(begin, stream_), "event");
      for (int step = 0; step < kStepsOfRound; ++step) Check(cudaGraphLaunch(ready, stream_), "graph");
      Check(cudaEventRecord(end, stream_), "event");
      Check(cudaEventSynchronize(end), "steps");
      Check(cudaEventElapsedTime(&elapsed, begin, end), "event");
    }
    meeting_.arrive_and_wait();
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    std::sort(rounds.begin(), rounds.end());
    return rounds[kRounds / 2] / kStepsOfRound;
  }

  const int device_, rank_;
  NcclDeviceGroup& group_;
  std::barrier<>& meeting_;
  cudaStream_t stream_ = nullptr;
};

std::vector<int> Numbers(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream stream(text);
  for (std::string each; std::getline(stream, each, ',');) numbers.push_back(std::stoi(each));
  return numbers;
}

}  // namespace

void ReportGroup(const std::string& model, int64_t sequences, int64_t context, bool whole,
                 const std::string& devices) {
  const std::vector<int> numbers = Numbers(devices);
  absl::StatusOr<std::shared_ptr<NcclDeviceGroup>> group = NcclDeviceGroup::Create(numbers, absl::Minutes(1));
  Check(group.status());
  std::barrier meeting(std::ssize(numbers));
  std::vector<RankTimes> times(numbers.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < std::ssize(numbers); ++rank) {
    threads.emplace_back([&, rank] {
      times[rank] = GroupRank(numbers[rank], rank, **group, meeting).Run(model, sequences, context, whole);
    });
  }
  for (std::thread& thread : threads) thread.join();

  const RankTimes& first = times[0];
  double bytes = 0, copy_rate = 0;
  for (const RankTimes& each : times) {
    bytes += each.bytes;
    copy_rate += each.copy_rate;
  }
  const auto calls = static_cast<double>(2 * ShapeOf(model).num_hidden_layers);
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, numbers[0]), "properties");
  std::printf(
      "%zu x %s: Qwen3-%s, %lld sequences of %lld tokens, %s sums; copies of 1 GiB move %.0f GB/s together\n",
      numbers.size(), properties.name, model.c_str(), static_cast<long long>(sequences),
      static_cast<long long>(context), whole ? "whole" : "cut", copy_rate);
  std::printf("  %-18s %8.3f ms a step, %8.0f tok/s, %.2f GB at %5.0f GB/s, share %.2f\n", "graph",
              first.step_ms, static_cast<double>(sequences) / first.step_ms * 1e3, bytes * 1e-9,
              bytes / first.step_ms * 1e-6, bytes / first.step_ms * 1e-6 / copy_rate);
  std::printf("  %-18s %8.3f ms a step, %.1f us a call of %.1f KB a GPU\n", "exchanges alone",
              first.exchange_ms, first.exchange_ms * 1e3 / calls,
              static_cast<double>(2 * sequences * ShapeOf(model).hidden_size) * 1e-3);
}

}  // namespace warpsmith
