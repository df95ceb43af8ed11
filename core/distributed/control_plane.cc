#include "core/distributed/control_plane.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/absl_view.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/distributed/rank_meeting.h"

namespace warpsmith {
namespace {

using Kind = ControlFrame::Kind;

// News of a lost rank reach every other within this time, unless the network itself is at fault.
constexpr absl::Duration kNewsTimeout = absl::Seconds(5);

// What is left to be sent at the end is sent within this time.
constexpr absl::Duration kGoodbyeTimeout = absl::Seconds(2);

// Not the wall clock: that one may jump, and a minute's jump must not look like a minute's silence.
absl::Duration Uptime() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

void AppendSized(std::string_view bytes, std::string& to) {
  const uint64_t size = bytes.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof(size));
  to.append(bytes);
}

std::string JoinParts(std::vector<std::string> parts) {
  std::string joined;
  for (const std::string& part : parts) AppendSized(part, joined);
  return joined;
}

absl::StatusOr<std::vector<std::string>> SplitParts(std::string_view joined, int count) {
  std::vector<std::string> parts;
  while (!joined.empty()) {
    uint64_t size = 0;
    if (joined.size() < sizeof(size)) return absl::InternalError("rank 0 sent malformed parts");
    std::memcpy(&size, joined.data(), sizeof(size));
    joined.remove_prefix(sizeof(size));
    if (joined.size() < size) return absl::InternalError("rank 0 sent malformed parts");
    parts.emplace_back(joined.substr(0, size));
    joined.remove_prefix(size);
  }
  if (static_cast<int>(parts.size()) != count) return absl::InternalError("rank 0 sent malformed parts");
  return parts;
}

}  // namespace

struct ControlPlane::Peer {
  Peer(int rank, UniqueFd fd) : rank(rank), connection(std::move(fd)), heard(Uptime()) {}

  const int rank;
  ControlConnection connection;
  bool ended = false;  // with success: its connection may close
  absl::Duration heard;
  std::string activity;  // empty before it said anything
  absl::Duration activity_since;
  std::optional<ControlFrame> part;  // of an exchange that this rank has not finished
};

absl::StatusOr<std::unique_ptr<ControlPlane>> ControlPlane::Create(const ProcessGroupEnvironment& environment,
                                                                   const ControlPlaneOptions& options) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus("cannot make", "an eventfd");
  MetRanks met;
  if (environment.world_size > 1) {
    ASSIGN_OR_RETURN(met, MeetRanks(environment, options.meeting_timeout, options.lines));
  }
  return std::unique_ptr<ControlPlane>(
      new ControlPlane(environment, options, std::move(met.store), std::move(met.peers), std::move(wake)));
}

ControlPlane::ControlPlane(const ProcessGroupEnvironment& environment, const ControlPlaneOptions& options,
                           std::unique_ptr<RendezvousStore> store, std::vector<UniqueFd> peers, UniqueFd wake)
    : rank_(environment.rank),
      size_(environment.world_size),
      options_(options),
      store_(std::move(store)),
      wake_(std::move(wake)),
      activity_since_(Uptime()),
      next_beat_(Uptime()) {
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    if (!peers[rank].valid()) continue;
    peers_.push_back(std::make_unique<Peer>(static_cast<int>(rank), std::move(peers[rank])));
  }
  if (peers_.empty()) return;
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "control");
}

ControlPlane::~ControlPlane() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stop_by_ = Uptime() + kGoodbyeTimeout;
  }
  Wake();
  thread_.join();
}

void ControlPlane::Say(std::string activity) {
  {
    absl::MutexLock lock(&mutex_);
    activity_ = std::move(activity);
    has_said_ = true;
    activity_since_ = Uptime();
    Beat();
  }
  Wake();
}

absl::StatusOr<std::string> ControlPlane::Broadcast(std::string bytes, std::string_view what) {
  if (rank_ != 0) bytes.clear();
  ASSIGN_OR_RETURN(const auto answer, Exchange(std::move(bytes), what, [](std::vector<std::string> parts) {
                     return std::move(parts[0]);
                   }));
  return *answer;
}

absl::StatusOr<std::vector<std::string>> ControlPlane::AllGather(std::string bytes, std::string_view what) {
  ASSIGN_OR_RETURN(const auto answer, Exchange(std::move(bytes), what, JoinParts));
  return SplitParts(*answer, size_);
}

absl::Status ControlPlane::Barrier(std::string_view what) {
  return Exchange("", what, [](const std::vector<std::string>&) { return std::string(); }).status();
}

absl::Status ControlPlane::status() const {
  absl::MutexLock lock(&mutex_);
  return error_;
}

absl::Status ControlPlane::CauseOf(const absl::Status& failure) const {
  if (!absl::IsUnavailable(failure) || size_ == 1) return failure;
  const absl::Time deadline = absl::Now() + kNewsTimeout;
  absl::MutexLock lock(&mutex_);
  while (error_.ok()) {
    if (changed_.WaitWithDeadline(&mutex_, deadline)) break;
  }
  return error_.ok() ? failure : error_;
}

void ControlPlane::Leave(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (left_ || !error_.ok()) return;  // the others know, or know better
    left_ = true;
    if (status.ok()) {
      QueueEnd(status);
    } else {
      const bool stopped = absl::IsCancelled(status);
      Break(absl::Status(
          stopped ? absl::StatusCode::kCancelled : absl::StatusCode::kAborted,
          absl::StrCat("rank ", rank_, " of ", size_,
                       stopped ? " has stopped: " : " ended with an error: ", status.message())));
    }
  }
  Wake();
}

absl::StatusOr<std::shared_ptr<const std::string>> ControlPlane::Exchange(std::string bytes,
                                                                          std::string_view what,
                                                                          Merge merge) {
  absl::MutexLock lock(&mutex_);
  const int64_t sequence = next_sequence_++;
  ControlFrame own{.kind = Kind::kPart, .number = sequence, .text = std::string(what), .bytes = nullptr};
  if (rank_ != 0) {
    own.bytes = std::make_shared<const std::string>(std::move(bytes));
    peers_[0]->connection.Queue(own);
    Wake();
    RETURN_IF_ERROR(AwaitParts(sequence, what));
    return std::move(*std::exchange(peers_[0]->part, std::nullopt)).bytes;
  }
  RETURN_IF_ERROR(AwaitParts(sequence, what));
  std::vector<std::string> parts = {std::move(bytes)};
  for (const std::unique_ptr<Peer>& peer : peers_) {
    parts.push_back(*std::exchange(peer->part, std::nullopt)->bytes);
  }
  own.bytes = std::make_shared<const std::string>(merge(std::move(parts)));
  for (const std::unique_ptr<Peer>& peer : peers_) peer->connection.Queue(own);
  Wake();
  return own.bytes;
}

// Until the peer's part of an exchange is there, or will never be.
void ControlPlane::AwaitPart(Peer& peer, std::string_view what, absl::Time began, absl::Time* line_due) {
  // Not a poll: the thread signals each change, and ends every wait for a rank that is not heard of.
  while (error_.ok() && !peer.part.has_value() && !peer.ended) {
    // After the start waits are long as a matter of course, and rank 0's log says what it does.
    if (has_said_) {
      changed_.Wait(&mutex_);
    } else if (changed_.WaitWithDeadline(&mutex_, *line_due)) {
      const std::string activity = peer.activity.empty() ? "" : absl::StrCat(", which is ", peer.activity);
      const std::string awaited =
          absl::StrCat("rank ", peer.rank, " to reach \"", AbslView(what), "\"", activity);
      *line_due = absl::Now() + options_.lines.interval;
      // Without the lock: beats go on where a terminal takes no line.
      mutex_.Unlock();
      options_.lines.say(WaitLine(awaited, absl::Now() - began, absl::InfiniteDuration()));
      mutex_.Lock();
    }
  }
}

// Returns when every peer's part of this exchange is there.
absl::Status ControlPlane::AwaitParts(int64_t sequence, std::string_view what) {
  const absl::Time began = absl::Now();
  absl::Time line_due = began + options_.lines.interval;
  for (const std::unique_ptr<Peer>& peer : peers_) {
    AwaitPart(*peer, what, began, &line_due);
    if (!error_.ok()) return error_;
    if (peer->part.has_value() && peer->part->number == sequence && peer->part->text == what) continue;
    const std::string theirs =
        peer->part.has_value() ? absl::StrCat("is at \"", peer->part->text, "\" (#", peer->part->number, ")")
                               : std::string("has ended");
    Break(absl::InternalError(absl::StrCat("ranks have lost step: rank ", peer->rank, " ", theirs, ", rank ",
                                           rank_, " is at \"", AbslView(what), "\" (#", sequence, ")")));
    Wake();
    return error_;
  }
  return error_;
}

void ControlPlane::Run() {
  std::vector<pollfd> waiting;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (stop_by_.has_value() && SaidGoodbye()) return;
      if (!stop_by_.has_value() && Uptime() >= next_beat_) Beat();
      waiting.clear();
      for (const std::unique_ptr<Peer>& peer : peers_) {
        const ControlConnection& connection = peer->connection;
        const short events = static_cast<short>(POLLIN | (connection.idle() ? 0 : POLLOUT));
        waiting.push_back({.fd = connection.open() ? connection.fd() : -1, .events = events, .revents = 0});
      }
    }
    waiting.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
    poll(waiting.data(), waiting.size(),
         static_cast<int>(absl::ToInt64Milliseconds(options_.heartbeat_interval)));
    uint64_t wakes = 0;
    [[maybe_unused]] const ssize_t taken = read(wake_.get(), &wakes, sizeof(wakes));
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (peers_[i]->connection.open()) Serve(*peers_[i], (waiting[i].revents & ~POLLOUT) != 0);
    }
  }
}

// Takes what has come, sends what waits, and judges the silence: after reading, so that a process that was
// stopped itself does not blame the others.
void ControlPlane::Serve(Peer& peer, bool readable) {
  absl::Status status;
  if (readable) {
    std::vector<ControlFrame> frames;
    status = peer.connection.ReceiveSome(frames);
    if (status.ok() || !frames.empty()) peer.heard = Uptime();
    for (ControlFrame& frame : frames) Take(peer, std::move(frame));
  }
  if (status.ok()) status = peer.connection.SendSome();
  if (!status.ok()) return Lose(peer, StdView(status.message()));
  const absl::Duration silence = Uptime() - peer.heard;
  // Rank 0 begins to speak when it has met all.
  const absl::Duration silence_max = peer.activity.empty() ? options_.meeting_timeout : options_.silence_max;
  if (silence > silence_max) Lose(peer, absl::StrCat("it was silent for ", Seconds(silence)));
}

void ControlPlane::Take(Peer& peer, ControlFrame frame) {
  if (frame.kind == Kind::kBeat) {
    peer.activity = frame.text;
    peer.activity_since = Uptime() - absl::Milliseconds(frame.number);
  } else if (frame.kind == Kind::kPart) {
    peer.part = std::move(frame);
    changed_.SignalAll();
  } else if (frame.number == 0) {
    peer.ended = true;
    changed_.SignalAll();
  } else {
    peer.ended = true;
    Break(absl::Status(static_cast<absl::StatusCode>(frame.number), frame.text));
  }
}

void ControlPlane::Beat() {
  const absl::Duration now = Uptime();
  next_beat_ = now + options_.heartbeat_interval;
  const ControlFrame beat{.kind = Kind::kBeat,
                          .number = absl::ToInt64Milliseconds(now - activity_since_),
                          .text = activity_,
                          .bytes = nullptr};
  for (const std::unique_ptr<Peer>& peer : peers_) {
    peer->connection.Queue(beat);
  }
}

void ControlPlane::Lose(Peer& peer, std::string_view why) {
  peer.connection.Close();
  if (peer.ended || stop_by_.has_value()) return;
  peer.ended = true;
  const absl::Duration now = Uptime();
  const std::string last =
      peer.activity.empty()
          ? std::string("it had not said what it was doing")
          : absl::StrCat("when last heard of, ", Seconds(now - peer.heard), " ago, it was ", peer.activity,
                         ", since ",
                         Seconds(std::max(absl::ZeroDuration(), peer.heard - peer.activity_since)));
  Break(absl::UnavailableError(absl::StrCat("rank ", peer.rank, " of ", size_, " is lost: ", AbslView(why),
                                            "; ", last,
                                            "; its log says why it ended, --resume goes on from the newest "
                                            "checkpoint")));
}

void ControlPlane::Break(const absl::Status& status) {
  if (!error_.ok()) return;
  error_ = status;
  QueueEnd(status);
  if (on_break_) on_break_();
  changed_.SignalAll();
}

// Rank 0 tells all ranks, the others tell rank 0.
void ControlPlane::QueueEnd(const absl::Status& status) {
  const ControlFrame end{.kind = Kind::kEnd,
                         .number = static_cast<int64_t>(status.code()),
                         .text = std::string(status.message()),
                         .bytes = nullptr};
  for (const std::unique_ptr<Peer>& peer : peers_) peer->connection.Queue(end);
}

// Everything is sent and the others have closed too, or time is up. Closing earlier, with bytes unread, would
// reset the connection and might take this rank's last words with it.
bool ControlPlane::SaidGoodbye() {
  bool all_closed = true;
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (!peer->connection.open()) continue;
    if (peer->connection.idle()) peer->connection.FinishSending();
    all_closed = false;
  }
  return all_closed || Uptime() >= *stop_by_;
}

void ControlPlane::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

BreakListener::BreakListener(ControlPlane* plane, std::function<void()> on_break) : plane_(plane) {
  if (plane_ == nullptr) return;
  absl::MutexLock lock(&plane_->mutex_);
  WS_CHECK(!plane_->on_break_) << "one listener a control plane";
  plane_->on_break_ = std::move(on_break);
}

BreakListener::~BreakListener() {
  if (plane_ == nullptr) return;
  absl::MutexLock lock(&plane_->mutex_);
  plane_->on_break_ = nullptr;
}

}  // namespace warpsmith
