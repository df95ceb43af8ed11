// Native and Python candidates that attack the judgement, the machine or each other.
#include <string>

#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/referee_fixture.h"

namespace warpsmith {
namespace {

const char* const kWork =
    "for (int64_t i = 0; i < n; ++i) { float v = 2 * x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v; }";
const char* const kHonestPython =
    "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    "        return torch.relu(x * 2 + 1) ** 2\n";

v1::Measurement Attack(const std::string& statements, const std::string& head = "") {
  return JudgeNative(TestTask("scaled_relu_square"), CandidateBody(statements, head));
}

v1::Measurement AttackTimed(const std::string& statements, const std::string& head = "") {
  return JudgeNative(TestTask("scaled_relu_square"), CandidateBody(statements, head), /*verify_only=*/false);
}

// After every attack, an honest candidate is still judged.
void RequireAlive() { REQUIRE(Attack(kWork).grade().verdict() == v1::VERDICT_CORRECT); }

TEST_CASE("an endless loop is a timeout") {
  CHECK(Attack("for (volatile int i = 0;; i = i + 1) {}").grade().verdict() == v1::VERDICT_TIMEOUT);
  RequireAlive();
}

TEST_CASE("an endless loop while loading is a timeout") {
  const v1::Measurement j =
      Attack(kWork, "__attribute__((constructor)) void f() { for (volatile int i = 0;; i = i + 1) {} }");
  CHECK(j.grade().verdict() == v1::VERDICT_TIMEOUT);
  RequireAlive();
}

TEST_CASE("sleeping for ever is a timeout") {
  CHECK(Attack("sleep(100);").grade().verdict() == v1::VERDICT_TIMEOUT);
}

TEST_CASE("forking is refused") {
  const v1::Measurement j = Attack("int p = fork(); if (p < 0) return 7; for (;;) fork();");
  CHECK(j.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(j.grade().verdict_reason() == "run() returned 7");
}

TEST_CASE("executing another program is refused") {
  CHECK(
      Attack("return execl(\"/usr/bin/true\", \"true\", nullptr) == -1 ? 8 : 0;").grade().verdict_reason() ==
      "run() returned 8");
  CHECK(Attack("return std::system(\"true\") != 0 ? 9 : 0;").grade().verdict_reason() == "run() returned 9");
}

TEST_CASE("filling the disk meets the limit of the jail's own tmpfs") {
  const v1::Measurement j = Attack(R"(
    FILE* f = std::fopen("/tmp/fill", "w"); if (!f) return 5;
    static char block[1 << 20]; long written = 0;
    for (int i = 0; i < 1000; ++i) { size_t k = std::fwrite(block, 1, sizeof block, f); written += k;
      if (k < sizeof block) return 6; }
    return 0;)");
  CHECK(j.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(j.grade().verdict_reason().find("returned 6") + j.grade().verdict_reason().find("signal") !=
        2 * std::string::npos);
  RequireAlive();
}

TEST_CASE("exhausting memory ends the candidate alone") {
  const v1::Measurement j = Attack(R"(
    for (int i = 0; i < 100000; ++i) { char* p = (char*)std::malloc(1 << 26); if (!p) return 4;
      std::memset(p, 1, 1 << 26); }
    return 0;)");
  CHECK((j.grade().verdict() == v1::VERDICT_RUNTIME_ERROR || j.grade().verdict() == v1::VERDICT_TIMEOUT));
  RequireAlive();
}

TEST_CASE("writing outside, opening sockets, reading accounts, harness and other processes is refused") {
  CHECK(Attack("FILE* f = std::fopen(\"/usr/lib/x\", \"w\"); return f ? 0 : 3;").grade().verdict_reason() ==
        "run() returned 3");
  CHECK(Attack("return socket(2, 1, 0) < 0 ? 3 : 0;", "#include <sys/socket.h>").grade().verdict_reason() ==
        "run() returned 3");
  CHECK(Attack("FILE* f = std::fopen(\"/etc/passwd\", \"r\"); return f ? 0 : 3;").grade().verdict_reason() ==
        "run() returned 3");
  CHECK(Attack("FILE* f = std::fopen(\"/proc/1/maps\", \"r\"); return f ? 0 : 3;").grade().verdict_reason() ==
        "run() returned 3");
  CHECK(Attack("return kill(-1, 9) < 0 ? 3 : 0;", "#include <signal.h>").grade().verdict_reason() ==
        "run() returned 3");
  CHECK(Attack("return ptrace(PTRACE_ATTACH, 2, 0, 0) < 0 ? 3 : 0;", "#include <sys/ptrace.h>")
            .grade()
            .verdict_reason() == "run() returned 3");
}

TEST_CASE("a forged verdict in print changes nothing") {
  const v1::Measurement j = Attack(
      "std::puts(\"{\\\"verdict\\\":\\\"CORRECT\\\",\\\"op\\\":\\\"judged\\\"}\"); std::fflush(stdout);");
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("a forged message on the channel ends the call with what is in the outputs then") {
  const v1::Measurement j = Attack(R"(
    const char text[] = "{\"op\":\"done\",\"result\":0}";
    char frame[64] = {}; frame[0] = sizeof text - 1; std::memcpy(frame + 4, text, sizeof text - 1);
    for (int fd = 3; fd < 64; ++fd) { ssize_t k = write(fd, frame, sizeof text + 3); (void)k; }
    for (volatile long i = 0; i < 400000000; i = i + 1) {})");
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
  RequireAlive();
}

TEST_CASE("leaving early with code 0 is a runtime error") {
  const v1::Measurement j = Attack("std::exit(0);");
  CHECK(j.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(j.grade().verdict_reason().find("exited with code 0") != std::string::npos);
  CHECK(Attack(kWork, "__attribute__((constructor)) void f() { _exit(0); }").grade().verdict() ==
        v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("a crash is told with its place") {
  CHECK(Attack("*(volatile int*)nullptr = 1;").grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  const v1::Measurement j = Attack("for (int64_t i = 0;; ++i) y[i] = 1;");
  CHECK(j.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(j.advice_facts().out_of_bounds());
  CHECK(Attack("std::abort();").grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(Attack("volatile char big[1 << 10]; big[0] = 1; return run(inputs, parameters, outputs) + big[0];")
            .grade()
            .verdict() == v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("writing a little outside an output is found by its guard") {
  const v1::Measurement j = Attack(std::string(kWork) + "y[n + 8] = 1;");
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
  CHECK(j.advice_facts().out_of_bounds());
}

TEST_CASE("writing to an input is found") {
  const v1::Measurement j = Attack(std::string(kWork) + "x[0] = 1;");
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
  CHECK(j.advice_facts().input_mutated());
}

TEST_CASE("answers kept from an earlier call are wrong in a later one") {
  const std::string head = "static float* kept = nullptr;";
  const v1::Measurement j =
      Attack("if (kept) { std::memcpy(y, kept, n * 4); return 0; }" + std::string(kWork) +
                 "kept = (float*)std::malloc(n * 4); std::memcpy(kept, y, n * 4);",
             head);
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("work that a background thread does after the call is too late") {
  const v1::Measurement j =
      AttackTimed("std::thread([=] {" + std::string(kWork) + "}).detach();", "#include <thread>\n");
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("work ahead in a background thread finds no inputs to work on") {
  // Computes from the slot that it saw first whenever the call has not come yet; copies when it has.
  const v1::Measurement j = AttackTimed(
      R"(
    static float* done = (float*)std::malloc(n * 4); static bool started = false;
    if (!started) {
      started = true; )" +
          std::string(kWork) + R"(
      std::thread([=] { for (;;)
        for (int64_t i = 0; i < n; ++i) { float v = 2 * x[i] + 1; v = v > 0 ? v : 0; done[i] = v * v; } }).detach();
    } else { std::memcpy(y, done, n * 4); })",
      "#include <thread>\n");
  CHECK(j.grade().verdict() != v1::VERDICT_CORRECT);
  RequireAlive();
}

TEST_CASE("a candidate that waits to be timed and then does nothing is wrong") {
  const v1::Measurement j =
      AttackTimed("static int calls = 0; if (++calls > 3) return 0;" + std::string(kWork));
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("a candidate cannot have itself started again while it is stopped") {
  const std::string head =
      "#include <fcntl.h>\n#include <signal.h>\n#include <sys/ioctl.h>\n#include <sys/syscall.h>\n"
      "#include <sys/time.h>\n#include <sys/timerfd.h>\n#include <time.h>\n#include <unistd.h>";
  // Counts what was allowed; SIGCONT to a thread of its own is the last.
  const std::string attempts = R"(
    sigevent e{}; e.sigev_notify = SIGEV_SIGNAL; e.sigev_signo = SIGCONT; timer_t timer;
    itimerval tick{{0, 1000}, {0, 1000}};
    int allowed = timer_create(CLOCK_MONOTONIC, &e, &timer) == 0;
    allowed += setitimer(ITIMER_REAL, &tick, nullptr) == 0;
    allowed += timerfd_create(CLOCK_MONOTONIC, 0) >= 0;
    allowed += fcntl(1, F_SETOWN, getpid()) == 0;
    allowed += fcntl(1, F_SETSIG, SIGCONT) == 0;
    allowed += fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_ASYNC) == 0;
    const long beyond = 1L << 32;  // an int has no such bit
    allowed += syscall(SYS_fcntl, 1, beyond | F_SETOWN, getpid()) == 0;
    allowed += syscall(SYS_fcntl, 1, beyond | F_SETSIG, SIGCONT) == 0;
    allowed += syscall(SYS_fcntl, 1, beyond | F_SETFL, fcntl(1, F_GETFL) | O_ASYNC) == 0;
    int on = 1; allowed += ioctl(1, FIOASYNC, &on) == 0;
    allowed += syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), beyond | SIGCONT) == 0;
    allowed += syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGCONT) == 0;
    return 70 + allowed;)";
  CHECK(Attack(attempts, head).grade().verdict_reason() == "run() returned 70");
  RequireAlive();
}

TEST_CASE("a candidate cannot take pages away that it shares") {
  const std::string attempts = R"(
    char* page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(y) & ~uintptr_t{4095});
    int allowed = madvise(page, 4096, MADV_REMOVE) == 0;
    const int cold = 20, page_out = 21, collapse = 25;
    allowed += madvise(page, 4096, cold) == 0;
    allowed += madvise(page, 4096, page_out) == 0;
    allowed += madvise(page, 4096, collapse) == 0;
    allowed += syscall(SYS_madvise, page, 4096, (1L << 32) | MADV_REMOVE) == 0;
    allowed += fallocate(-1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0 || errno != EPERM;
    return 70 + allowed + (madvise(page, 4096, MADV_NORMAL) != 0) * 10;)";
  CHECK(Attack(attempts,
               "#include <cerrno>\n#include <cstdint>\n#include <fcntl.h>\n#include <sys/mman.h>\n"
               "#include <sys/syscall.h>\n#include <unistd.h>")
            .grade()
            .verdict_reason() == "run() returned 70");
}

TEST_CASE("priority and cores cannot be changed") {
  CHECK(
      Attack(
          "cpu_set_t s; CPU_ZERO(&s); CPU_SET(0, &s); return sched_setaffinity(0, sizeof s, &s) < 0 ? 3 : 0;",
          "#include <sched.h>")
          .grade()
          .verdict_reason() == "run() returned 3");
}

TEST_CASE("a Python candidate has no other process, no network and no compiler") {
  const std::string tail = kHonestPython;
  const TaskSource task = TestTask("scaled_relu_square");
  CHECK(JudgePython(task, "import os\nos.fork()\n" + tail).grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython(task, "import subprocess\nsubprocess.run(['true'])\n" + tail).grade().verdict() ==
        v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython(task, "import socket\nsocket.socket()\n" + tail).grade().verdict() ==
        v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython(task, "open('/etc/passwd')\n" + tail).grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython(task, "import os\nos._exit(0)\n" + tail).grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython(task, "while True: pass\n" + tail).grade().verdict() == v1::VERDICT_TIMEOUT);
}

TEST_CASE("nothing that one process has written behind its inputs is there for the next") {
  // A mebibyte of inputs lies in a file of two, which three processes of nine share in turn.
  const std::string source =
      "import ctypes, torch\n"
      "class ModelNew(torch.nn.Module):\n"
      "    marked = False\n"
      "    def forward(self, x):\n"
      "        word = ctypes.c_uint64.from_address(x.data_ptr() + (2 << 20) - 8)\n"
      "        if word.value == 77 and not self.marked:\n"
      "            raise RuntimeError('somebody was here')\n"
      "        word.value = 77\n"
      "        self.marked = True\n"
      "        return torch.relu(x * 2 + 1) ** 2\n";
  const v1::Measurement j = JudgePython(TestTask("scaled_relu_square"), source, /*verify_only=*/false);
  CHECK(j.grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(j.grade().verdict_reason().find("somebody") == std::string::npos);
}

TEST_CASE("a native candidate has no descriptor of a file that outlives it") {
  const std::string attempts = R"(
    int files = 0;
    for (int fd = 0; fd < 256; ++fd) { struct stat info; files += fstat(fd, &info) == 0 && S_ISREG(info.st_mode); }
    return 70 + files;)";
  CHECK(Attack(attempts, "#include <sys/stat.h>").grade().verdict_reason() == "run() returned 70");
}

TEST_CASE("a Python candidate that patches Torch or clocks changes its own process only") {
  const std::string patch =
      "import torch, time\ntorch.relu = lambda x: x * 0\ntime.perf_counter = lambda: 0.0\n"
      "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n";
  CHECK(JudgePython(TestTask("scaled_relu_square"), patch).grade().verdict() == v1::VERDICT_INCORRECT);
  CHECK(JudgePython(TestTask("scaled_relu_square"), kHonestPython).grade().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a Python output that is no plain tensor is an error") {
  const std::string source =
      "import torch\nclass Lazy(torch.Tensor):\n    pass\nclass ModelNew(torch.nn.Module):\n"
      "    def forward(self, x):\n        return (torch.relu(x * 2 + 1) ** 2).as_subclass(Lazy)\n";
  CHECK(JudgePython(TestTask("scaled_relu_square"), source).grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("code that a candidate writes to a file is not loaded") {
  const v1::Measurement j = Attack(
      "std::ifstream from(\"/candidate/candidate.so\", std::ios::binary);"
      "std::ofstream to(\"/tmp/copy.so\", std::ios::binary); to << from.rdbuf(); to.close();"
      "if (!from || !to) return 5; return dlopen(\"/tmp/copy.so\", RTLD_NOW) == nullptr ? 6 : 0;",
      "#include <dlfcn.h>\n#include <fstream>\n");
  CHECK(j.grade().verdict_reason() == "run() returned 6");
}

TEST_CASE("a candidate cannot change the folder of its own library") {
  const v1::Measurement j = Attack(
      "if (std::ofstream(\"/candidate/other.so\")) return 5;"
      "if (std::ofstream(\"/candidate/candidate.so\", std::ios::app)) return 6;"
      "if (std::remove(\"/candidate/candidate.so\") == 0) return 7; return 8;",
      "#include <fstream>\n");
  CHECK(j.grade().verdict_reason() == "run() returned 8");
}

}  // namespace
}  // namespace warpsmith
