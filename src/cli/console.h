// What a job says, as lines on stderr.
#pragma once

#include "cli/progress.h"
#include "jobs/job.h"

namespace limber {

// Notes and warnings are lines, what is for those who look closely goes to the log, progress is one line
// that is written over.
class Console : public JobObserver {
 public:
  void on_note(NoteKind kind, const std::string& text) override;
  void on_progress(const JobProgress& progress) override;
  void clear() { line_.clear(); }  // the line, before something else is printed

 private:
  ProgressLine line_;
};

// One console and the signals: for commands that run a job which can be stopped.
struct ConsoleControl {
  Console console;
  JobControl control;

  ConsoleControl();  // Ctrl-C and SIGTERM stop the job
  ConsoleControl(const ConsoleControl&) = delete;
  ConsoleControl& operator=(const ConsoleControl&) = delete;
};

}  // namespace limber
