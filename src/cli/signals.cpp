#include "cli/signals.h"

#include <csignal>

namespace limber {
namespace {

std::atomic<bool> asked{false};

std::atomic<int> hangups{0};

void ask_to_stop(int) { asked = true; }
void count_hangup(int) { ++hangups; }

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

const std::atomic<int>& count_hangups() {
  struct sigaction action {};
  action.sa_handler = count_hangup;
  action.sa_flags = static_cast<int>(SA_RESTART);
  ::sigaction(SIGHUP, &action, nullptr);
  return hangups;
}

}  // namespace limber
