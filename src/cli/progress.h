// How far long work is: a bar on a terminal, lines in a log. On stderr.
#pragma once

#include <string>

namespace limber {

// "[######..................]"
std::string progress_bar(double share);

// A line that is written over on a terminal, and comes now and then in a log.
class ProgressLine {
 public:
  ProgressLine();
  void show(const std::string& text);
  void clear();  // before something else is printed

 private:
  const bool terminal_;
  double shown_;          // when
  bool visible_ = false;  // a line is on the screen
};

}  // namespace limber
