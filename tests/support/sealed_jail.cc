#include "tests/support/sealed_jail.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/memory_file.h"
#include "reward_service/measure/referee.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr int kNumCalls = 2;
constexpr int kExtent = 64;
constexpr double kScale = 2;
constexpr int64_t kMemoryBytes = int64_t{4} << 30;
constexpr int kCpuSeconds = 20;

std::filesystem::path Share() { return ShareDirectory(); }

// With a parameter of as many zeros, where there is a GPU.
TaskLayout Layout(bool gpu) {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {kExtent, kExtent}}};
  const nlohmann::json number = {
      {"code", 2}, {"bits", 64}, {"shape", nlohmann::json::array()}, {"number", true}};
  const nlohmann::json one = nlohmann::json::array({tensor});
  nlohmann::json parameter = tensor;
  parameter["name"] = "weight";
  const nlohmann::json parameters = gpu ? nlohmann::json::array({parameter}) : nlohmann::json::array();
  auto layout =
      MakeLayout({{"inputs", {tensor, number}}, {"parameters", parameters}, {"outputs", one}}, 1 << 20);
  WS_CHECK(layout.ok()) << layout.status().ToString();
  return *layout;
}

std::unique_ptr<Zygote> MustStart(absl::StatusOr<std::unique_ptr<Zygote>> zygote) {
  WS_CHECK(zygote.ok()) << zygote.status().ToString();
  return *std::move(zygote);
}

// Jails are the zygotes' grandchildren, and ours to wait for.
void InheritJails() { WS_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0); }

GpuStore& FakeGpuStore() {
  static const std::unique_ptr<GpuStore> store = [] {
    auto opened = GpuStore::Open(0);
    WS_CHECK(opened.ok()) << opened.status().ToString();
    return *std::move(opened);
  }();
  return *store;
}

// The fake driver stands for the runtime, too: the programs here need none.
Zygote& FakeGpuZygote() {
  static const std::unique_ptr<Zygote> zygote = [] {
    InheritJails();
    const std::filesystem::path driver = FakeCudaFolder() / "libcuda.so.1";
    const GpuAccess gpu{.uuid = "GPU-fake", .driver = driver, .runtime = driver};
    return MustStart(Zygote::StartNative(Share().parent_path().parent_path() / "bin", gpu));
  }();
  return *zygote;
}

// Inputs that no other call has, kept in that store, and appends the first of them to `all`.
OwnTensors MakeInputs(TensorStore& store, const TaskLayout& layout, int run, std::vector<float>& all) {
  std::vector<float> input;
  for (int i = 0; i < kExtent * kExtent; ++i)
    input.push_back(0.25F * static_cast<float>(i % 37) - 3.0F + static_cast<float>(run) +
                    static_cast<float>(all.size()));
  all.insert(all.end(), input.begin(), input.end());
  auto memory = store.Make(layout.input_buffer_bytes);
  WS_CHECK(memory.ok()) << memory.status().ToString();
  (*memory)->Write(reinterpret_cast<const char*>(input.data()), layout.inputs[0].offset,
                   static_cast<int64_t>(input.size() * sizeof(float)));
  (*memory)->Write(reinterpret_cast<const char*>(&kScale), layout.inputs[1].offset, sizeof(kScale));
  for (const TensorSpec& parameter : layout.parameters) {
    std::vector<float> values(static_cast<size_t>(parameter.num_elements));
    std::iota(values.begin(), values.end(), 0.0F);
    (*memory)->Write(reinterpret_cast<const char*>(values.data()), parameter.offset, parameter.num_bytes);
  }
  auto kept = store.Keep(**memory, 0, layout.input_buffer_bytes, KeptIn::kDevice);
  WS_CHECK(kept.ok()) << kept.status().ToString();
  store.Settle();
  return *std::move(kept);
}

SealedRun RunProgram(Zygote& zygote, Program program, SealedOptions options) {
  program.withhold = options.withhold;
  program.num_threads = options.num_threads;
  const TaskLayout layout = Layout(options.gpu);
  auto process = zygote.Fork({.role = "python",
                              .memory_bytes_max = kMemoryBytes,
                              .cpu_seconds_max = kCpuSeconds,
                              .num_threads = options.num_threads,
                              .sealed = options.sealed,
                              .gpu = options.gpu});
  TensorStore& store = options.gpu ? FakeGpuStore() : HostStore();
  auto buffers = MakeBuffers(store, layout, program.kind, options.calls_of_run);
  WS_CHECK(process.ok() && buffers.ok()) << process.status().ToString();
  Jail jail(*std::move(process), *std::move(buffers), layout,
            {.cpu_seconds_max = kCpuSeconds, .call_seconds_max = 10});
  SealedRun run;
  run.fault = *jail.Begin(program, nullptr);
  const TensorSpec& spec = layout.outputs[0];
  std::vector<Draw> draws(static_cast<size_t>(options.calls_of_run));
  while (!run.fault && run.num_calls < kNumCalls) {
    run.input.clear();
    run.output.clear();
    std::vector<const Draw*> batch;
    for (Draw& draw : draws) {
      draw.inputs = MakeInputs(store, layout, run.num_calls, run.input);
      batch.push_back(&draw);
    }
    jail.Load(batch);
    const auto* const loaded = reinterpret_cast<const float*>(
        jail.inputs()->Read(layout.inputs[0].offset, kExtent * kExtent * sizeof(float)));
    run.loaded.assign(loaded, loaded + kExtent * kExtent);
    for (const TensorSpec& parameter : layout.parameters) {
      const auto* const values =
          reinterpret_cast<const float*>(jail.inputs()->Read(parameter.offset, parameter.num_bytes));
      run.loaded_parameter.assign(values, values + parameter.num_elements);
    }
    run.fault = jail.Run();
    for (size_t call = 0; call < draws.size() && !run.fault; ++call) {
      Fault fault;
      const absl::StatusOr<const void*> output = jail.Output(0, fault, call);
      if (!output.ok()) {
        run.fault = fault;
        break;
      }
      const auto* const values = static_cast<const float*>(*output);
      run.output.insert(run.output.end(), values, values + spec.num_elements);
    }
    if (run.fault) break;
    ++run.num_calls;
    if (program.kind == CandidateKind::kKernelBenchPython) run.fault = jail.Refresh();
  }
  return run;
}

}  // namespace

Zygote& TestNativeZygote() {
  static const std::unique_ptr<Zygote> zygote = [] {
    InheritJails();
    return MustStart(Zygote::StartNative(Share().parent_path().parent_path() / "bin"));
  }();
  return *zygote;
}

Zygote& TestPythonZygote() {
  static const std::unique_ptr<Zygote> zygote = [] {
    InheritJails();
    const std::filesystem::path python = GetBuildInfo().python;
    const auto folders = PythonFolders(python);
    WS_CHECK(folders.ok()) << folders.status().ToString();
    return MustStart(Zygote::StartPython(python, Share(), *folders, 1));
  }();
  return *zygote;
}

SealedRun RunNative(const UniqueFd& library, SealedOptions options) {
  Program program;
  program.library_fd = library.get();
  return RunProgram(options.gpu ? FakeGpuZygote() : TestNativeZygote(), program, options);
}

SealedRun RunPython(const std::string& source, const std::vector<int>& extensions, SealedOptions options) {
  const auto text = SealedMemoryFile(source);
  WS_CHECK(text.ok()) << text.status().ToString();
  Program program;
  program.kind = CandidateKind::kKernelBenchPython;
  program.source_fd = text->get();
  program.extension_fds = extensions;
  return RunProgram(TestPythonZygote(), program, options);
}

UniqueFd CompileExtension(const std::string& source, ExtensionHeaders headers) {
  const TemporaryDirectory directory;
  const std::string from = directory.path() / "own.cc";
  const std::string to = directory.path() / "own.so";
  WS_CHECK(WriteFileAtomically(from, source).ok()) << from;
  const std::string torch = GetBuildInfo().torch_dir;
  const std::string facade = Share() / "facade";
  const std::string torch_includes =
      absl::StrCat(" -isystem ", torch, "/include -isystem ", torch, "/include/torch/csrc/api/include");
  const std::string own_includes = " -isystem reward_service/facade/include";
  std::string includes = absl::StrCat(" -isystem ", facade, "/shims", own_includes);
  std::string libraries = absl::StrCat(" -L", facade, " -lwarpsmith_facade");
  if (headers == ExtensionHeaders::kLight) {
    includes = absl::StrCat(" -isystem ", facade, "/light", own_includes, torch_includes);
    absl::StrAppend(&libraries, " -L", torch, "/lib -lc10 -ltorch_cpu -ltorch");
  } else if (headers == ExtensionHeaders::kTorch) {
    includes =
        absl::StrCat(torch_includes, " -DTORCH_API_INCLUDE_EXTENSION_H -isystem $(", GetBuildInfo().python,
                     " -c 'import sysconfig; print(sysconfig.get_paths()[\"include\"])')");
    libraries = absl::StrCat(" -L", torch, "/lib -lc10 -ltorch_cpu -ltorch -ltorch_python");
  }
  const std::string command = absl::StrCat(
      "g++ -std=c++17 -O2 -w -fopenmp -fPIC -shared -D_GLIBCXX_USE_CXX11_ABI=1 -DTORCH_EXTENSION_NAME=own",
      includes, " ", from, libraries, " -o ", to);
  WS_CHECK(std::system(command.c_str()) == 0) << command;
  return UniqueFd(open(to.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace warpsmith
