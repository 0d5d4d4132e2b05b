// What a job says, as lines on stderr.
#pragma once

#include <type_traits>

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

// Says that a job was stopped that leaves nothing to go on from.
int stopped();

// Does such a job; what it said of its progress is gone when it is done.
template <typename Options, typename Outcome>
Outcome on_console(Outcome (*run)(const Options&, const JobControl&),
                   const std::type_identity_t<Options>& options) {
  ConsoleControl console;
  Outcome outcome = run(options, console.control);
  console.console.clear();
  return outcome;
}

}  // namespace limber
