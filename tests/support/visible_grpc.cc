// The border between this program and gRPC, for builds with ThreadSanitizer. gRPC of the distribution is not
// instrumented and hands calls from thread to thread by atomics, which nothing shows: all that a call
// carries, the reactors included, would look as if two threads used it at once. So each way into gRPC and out
// of it counts as taking and releasing one lock: what a thread did before it entered comes before what any
// thread does after it leaves.
//
// What two threads do between their crossings is compared as ever.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpcpp/support/server_callback.h>
#include <sanitizer/tsan_interface.h>

namespace {

char border;

void Cross() {
  __tsan_acquire(&border);
  __tsan_release(&border);
}

// Calls gRPC's own function of that name, which a definition here hides.
template <typename Result, typename... Parameters>
class Hidden {
 public:
  Hidden(Result (*)(Parameters...), const char* name)
      : function_(reinterpret_cast<Result (*)(Parameters...)>(dlsym(RTLD_NEXT, name))) {}

  Result operator()(Parameters... arguments) const {
    const Crossing crossing;
    return function_(arguments...);
  }

 private:
  struct Crossing {
    Crossing() { Cross(); }
    ~Crossing() { Cross(); }
  };

  Result (*const function_)(Parameters...);
};

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t num_ops, void* tag,
                                      void* reserved) {
  static const Hidden hidden(grpc_call_start_batch, __func__);
  return hidden(call, ops, num_ops, tag, reserved);
}

grpc_call_error grpc_call_cancel(grpc_call* call, void* reserved) {
  static const Hidden hidden(grpc_call_cancel, __func__);
  return hidden(call, reserved);
}

void grpc_call_unref(grpc_call* call) {
  static const Hidden hidden(grpc_call_unref, __func__);
  hidden(call);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline, void* reserved) {
  static const Hidden hidden(grpc_completion_queue_next, __func__);
  return hidden(queue, deadline, reserved);
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag, gpr_timespec deadline,
                                       void* reserved) {
  static const Hidden hidden(grpc_completion_queue_pluck, __func__);
  return hidden(queue, tag, deadline, reserved);
}

}  // extern "C"

// A reactor's end: the threads that held its call count down, some in code of this program, some in the
// library, and the last one lets go of it. What any of them did before is done.
namespace grpc::internal {
namespace {

class ThenCounts final : public ServerReactor {
 public:
  ThenCounts(ServerReactor* reactor, void* counter) : reactor_(reactor), counter_(counter) {}
  void OnCancel() override {
    reactor_->OnCancel();
    __tsan_release(counter_);
    delete this;
  }
  void OnDone() override {}

 private:
  ServerReactor* const reactor_;
  void* const counter_;
};

}  // namespace

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  static const auto hidden = reinterpret_cast<void (*)(ServerCallbackCall*, ServerReactor*)>(
      dlsym(RTLD_NEXT, "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE"));
  hidden(this, new ThenCounts(reactor, &callbacks_outstanding_));
}

void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  static const auto hidden = reinterpret_cast<void (*)(ServerCallbackCall*, bool)>(
      dlsym(RTLD_NEXT, "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb"));
  __tsan_acquire(&callbacks_outstanding_);
  hidden(this, inline_ondone);
}

}  // namespace grpc::internal
