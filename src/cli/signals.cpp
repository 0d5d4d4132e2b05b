#include "cli/signals.h"

#include <csignal>

namespace limber {
namespace {

std::atomic<bool> asked{false};

void ask_to_stop(int) { asked = true; }

}  // namespace

std::atomic<bool>& stop_asked() { return asked; }

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace limber
