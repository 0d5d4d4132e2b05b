#include "cli/console.h"

#include <spdlog/spdlog.h>

#include "cli/arguments.h"
#include "cli/say.h"
#include "cli/signals.h"

namespace limber {

void Console::on_note(NoteKind kind, const std::string& text) {
  if (kind == NoteKind::kInfo) {
    spdlog::info("{}", text);
    return;
  }
  line_.clear();
  say("{}: {}\n", kind == NoteKind::kNote ? "note" : "warning", text);
}

void Console::on_progress(const JobProgress& progress) {
  std::string line(progress.stage);
  if (progress.share >= 0) line += " " + progress_bar(progress.share);
  if (!progress.text.empty()) line += fmt::format(" {}", progress.text);
  line_.show(line);
}

ConsoleControl::ConsoleControl() : control{.observer = &console, .stop = &stop_asked()} {
  catch_stop_signals();
}

int stopped() {
  say("limber: stopped\n");
  return kExitFailed;
}

}  // namespace limber
