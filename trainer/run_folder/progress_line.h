// How far a run is, for whoever watches it.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_PROGRESS_LINE_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_PROGRESS_LINE_H_

#include <string>

#include "absl/time/time.h"

namespace warpsmith {

// A bar with share, elapsed and remaining time that redraws itself on a terminal; plain lines elsewhere, at
// most one in five seconds and one at the end of a phase. Writes to standard error. Not thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Starts a phase, e.g. "cold start"; ends the one before.
  void Start(std::string phase);

  // `fraction` of the phase is done, in [0, 1]; `detail` is a few current figures.
  void Update(double fraction, const std::string& detail);

  // As Update, but at once and on a line that stays.
  void Keep(double fraction, const std::string& detail);

  // Ends the phase with a line that stays.
  void Finish(const std::string& detail);

 private:
  void Draw(double fraction, const std::string& detail);

  const bool terminal_;
  std::string phase_;
  absl::Time start_;
  absl::Time last_drawn_;
  bool open_ = false;  // a line without its end is on the terminal
};

// "cold start  [######----] 60% 1m12s, 48s left  loss 0.71": what Update shows, for a terminal or for a log.
std::string FormatProgress(const std::string& phase, double fraction, absl::Duration elapsed,
                           const std::string& detail, bool with_bar);

// "5 of 8 groups": how far a request for groups is.
std::string GroupsText(int num_arrived, int num_wanted);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_PROGRESS_LINE_H_
