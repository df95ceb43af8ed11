// Memory that the referee shares with jails, wherever it lies, and what has to be waited for there.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_TENSOR_STORE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_TENSOR_STORE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/referee/tensors/comparison.h"
#include "reward_service/referee/tensors/device_turn.h"
#include "reward_service/referee/tensors/few_at_a_time.h"
#include "reward_service/referee/tensors/late_pairs.h"
#include "reward_service/referee/tensors/own_tensors.h"

namespace warpsmith {

// A buffer of fixed size. The referee touches it while the jail that has it is stopped. What it writes there is there
// for the jail after TensorStore::Settle(). What fails here is no jail's fault: it is kept, and told by
// TensorStore::Health().
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;

  virtual int64_t num_bytes() const = 0;
  // `value` into every byte, and nothing of anybody's behind them.
  virtual void FillAll(unsigned char value) = 0;
  virtual void Fill(unsigned char value, int64_t offset, int64_t num_bytes) = 0;
  virtual void Write(const char* from, int64_t offset, int64_t num_bytes) = 0;
  // The same from `from_offset` of tensors that its own store keeps.
  virtual void Write(const OwnTensors& from, int64_t from_offset, int64_t offset, int64_t num_bytes) = 0;
  // Whether the bytes here are those of such tensors.
  virtual bool IsSame(const OwnTensors& as, int64_t as_offset, int64_t offset, int64_t num_bytes) = 0;
  // Bytes on the host as they are now, valid until the next call.
  virtual const char* Read(int64_t offset, int64_t num_bytes) = 0;

  // By which a jail maps it: both ways, and where the store can say so to be read only.
  virtual int fd() const = 0;
  virtual int read_only_fd() const = 0;
};

// What an output of a draw should be.
struct ExpectedOutput {
  const TensorSpec& spec;
  const Tolerance& tolerance;
  const OwnTensors& tensors;
};

// A copy of tensors that a store keeps, from their first byte on, in memory that it made.
struct TensorCopy {
  const OwnTensors* from = nullptr;
  int64_t offset = 0;
  int64_t num_bytes = 0;
  std::vector<LatePair> late;
};

// Where a tensor lies that a program has made itself: in an allocation, by the handle that its jail gave for it, in
// hexadecimal, from this byte on, its elements so far apart; without strides one behind the other.
struct ForeignPlace {
  std::string_view handle;
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

// Where a store keeps a draw: on the device where programs compute, or in the host's memory, which has more room and is
// slower to reach. For programs of the host both are the same.
enum class KeptIn { kDevice, kHost };

// Where the tensors of programs lie. For one thread, but for Make().
class TensorStore {
 public:
  virtual ~TensorStore() = default;

  // Zeros. RESOURCE_EXHAUSTED where there is no memory.
  virtual absl::StatusOr<std::unique_ptr<TensorMemory>> Make(int64_t num_bytes) = 0;
  // A copy of a part of memory that it made; of what is there until Settle(). RESOURCE_EXHAUSTED likewise.
  virtual absl::StatusOr<OwnTensors> Keep(TensorMemory& memory, int64_t offset, int64_t num_bytes,
                                          KeptIn where) = 0;
  // Makes these copies; their late pairs replace those that were not given. On the host none is late: what is stopped
  // there does nothing.
  virtual void Copy(const std::vector<TensorCopy>& copies, TensorMemory* to) {
    for (const TensorCopy& copy : copies) to->Write(*copy.from, 0, copy.offset, copy.num_bytes);
  }
  // Returns when they are where they belong: how long that took beyond what an idle device takes for a word [us].
  virtual absl::StatusOr<double> GiveLateWords() { return 0.0; }
  // Waits until all is done that was asked of memory here: before a process goes on that has it mapped.
  virtual void Settle() {}
  // All memory of the device, which others use, too; 0 for the host's, of which each has its share anyway.
  virtual int64_t device_bytes() const { return 0; }
  // Whether others than who has `own_bytes` of it keep so much that who lacked memory may have found it without them.
  virtual bool IsCrowded(int64_t /*own_bytes*/) const { return false; }
  // Whether a program must open a GPU to reach it.
  virtual bool on_gpu() const = 0;
  // Held by whoever computes on a device that is one for all: alone by a judgement that times, so that nobody is timed
  // beside another, shared by oracles, by programs that are recorded, and by candidates that are verified. Null where
  // each has cores of its own.
  virtual DeviceTurn* turn() { return nullptr; }
  // A place of it is taken before such a turn by an oracle that draws; null likewise. Each wait for a GPU takes as long
  // as all have their turn there who wait at once.
  virtual FewAtATime* drawing() { return nullptr; }
  // Whether memory was scarce at some time since then, now included, as far as anybody saw: nobody can tell then
  // whether a program of that time lacked it.
  virtual bool WasScarceSince(absl::Time /*since*/) { return false; }
  // Whether the device has so much memory left that processes may be there that need not.
  virtual bool HasPlenty() { return true; }
  // For whoever has the device's turn alone: processes that wait there, stopped, end, for they keep memory of it, and
  // may have left it at work. Whether there were any. While memory is scarce, waits for a moment until theirs is back.
  virtual bool EndWaiting() { return false; }
  // Copies from `offset` of an allocation that a program has made itself, by the handle that its jail gave for it, in
  // hexadecimal. Believes neither: an error says that there is no such memory. The program is stopped. Where programs
  // need no GPU they have no such memory.
  virtual absl::Status ReadForeign(std::string_view handle, int64_t offset, int64_t num_bytes, char* to) = 0;
  // Compares an output where it lies: in memory that it made, or in such an allocation as above. `expected`
  // has it at the offset of the specification. UNIMPLEMENTED where outputs are compared on the host. Numbers that are
  // wrong are told as Compare() tells them, but for outputs without outliers; of others only that some are.
  virtual absl::StatusOr<Comparison> CompareInPlace(const ExpectedOutput& expected, TensorMemory& memory,
                                                    int64_t offset) = 0;
  virtual absl::StatusOr<Comparison> CompareForeign(const ExpectedOutput& expected,
                                                    const ForeignPlace& place) = 0;
  // Fills bytes of such an allocation with `value`. Does nothing where the handle is wrong or programs need no GPU.
  virtual void FillForeign(unsigned char /*value*/, std::string_view /*handle*/, int64_t /*offset*/,
                           int64_t /*num_bytes*/) {}
  // Gives back what it has opened of these handles to compare: before their program runs again, which may free it, or
  // ends.
  virtual void CloseForeign(const std::set<std::string>& /*handles*/) {}
  // Waits until everything is done that the program, which is stopped, has asked for: how long that took beyond what
  // it takes where there is nothing to do [us]. At once, and nothing, while the device's turn is shared: nobody can
  // tell whose work is still there. DEADLINE_EXCEEDED: it works on. Another status is no program's doing, and kept as
  // Failure().
  virtual absl::StatusOr<double> AwaitDone(double seconds_max) = 0;
  // Gives the device some 400 us of work of this process's, while its turn is not shared: nobody else's is done
  // meanwhile.
  virtual void Occupy() {}
  // Returns when that is done: how much longer it took than it does alone [us].
  virtual absl::StatusOr<double> AwaitOccupied() { return 0.0; }
  // Has no tensor lie in a cache of the device, where there is one that a program could find it in. Nothing, while the
  // device's turn is shared: nobody is timed.
  virtual void MakeCold() = 0;
  // Not OK once anything failed that no program can have caused: nothing that was measured since counts.
  virtual absl::Status Health() = 0;
  // What has failed here and is nobody's fault, as far as it was noticed: asks the device nothing.
  virtual absl::Status Failure() { return absl::OkStatus(); }
};

// Memory files, mapped in both processes. Thread-safe.
TensorStore& HostStore();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_TENSOR_STORE_H_
