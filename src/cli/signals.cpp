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
  // A terminal that is closed; who was started by nohup wants to go on.
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
}

}  // namespace limber
