// How long work is watched and stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

namespace limber {
inline namespace v1 {

enum class NoteLevel : uint8_t {
  kInfo,     // for those who look closely
  kNote,     // what was decided for you, and you may want otherwise
  kWarning,  // the outcome may not be what you meant
};

struct Progress {
  std::string_view stage;  // "training", "searching" ...
  double share = 0;        // of the stage, 0..1; negative: nobody knows
  std::string_view text;   // where it stands; may be empty
};

// Everything here is optional. The functions are called from the thread that called Limber and must not
// throw; the texts are valid during the call.
struct Control {
  std::function<void(const Progress&)> on_progress;
  std::function<void(NoteLevel, std::string_view)> on_note;
  // Once it is true, from whatever thread, the work ends at the next good place and loses nothing; its report
  // then says that it was stopped. It must outlive the call.
  const std::atomic<bool>* stop = nullptr;
};

}  // namespace v1
}  // namespace limber
