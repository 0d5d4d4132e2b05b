// What all jobs share: how they are watched, and how they are stopped.
//
// A job is a whole task that a user asks for: typed options with defaults, a typed result, and no word about
// where the options came from or where the result goes. Options that cannot work are refused by the job with
// kInvalidArgument before anything is written. Messages call options by the names of their fields.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace limber {

enum class NoteKind : uint8_t {
  kInfo,     // for those who look closely
  kNote,     // what the job decided by itself, and a user may want otherwise
  kWarning,  // the outcome may not be what was meant
};

struct JobProgress {
  std::string_view stage;  // "searching"; the same text as long as it is the same stage
  double share = 0;        // of the stage, 0..1; negative: nobody knows
  std::string_view text;   // where it stands: "12 variants, best 91.2 %"; may be empty
};

// Called by the job from the thread that runs it; what takes long there makes the job take long.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void on_note(NoteKind /*kind*/, const std::string& /*text*/) {}
  virtual void on_progress(const JobProgress& /*progress*/) {}
};

struct JobControl {
  JobObserver* observer = nullptr;          // null: nobody watches
  const std::atomic<bool>* stop = nullptr;  // true: the job ends at the next good place and loses nothing

  bool stop_asked() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  void note(NoteKind kind, const std::string& text) const {
    if (observer != nullptr) observer->on_note(kind, text);
  }
  void progress(const JobProgress& progress) const {
    if (observer != nullptr) observer->on_progress(progress);
  }
};

}  // namespace limber
