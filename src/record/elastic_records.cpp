#include "record/elastic_records.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "record/records.h"

namespace limber {
namespace {

// The text of a note, which goes.
std::optional<std::string> take(Notes& notes, const std::string& name) {
  const auto found = notes.find(name);
  if (found == notes.end()) return std::nullopt;
  std::string text = std::move(found->second);
  notes.erase(found);
  return text;
}

double seconds_in(const std::optional<std::string>& text) {
  double seconds = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), seconds);
  return std::max(seconds, 0.0);
}

std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

}  // namespace

std::string TeachingNote::problem() const {
  const std::string problem = not_seconds("spent_s", spent_s);
  return problem.empty() ? not_seconds("taught_s", taught_s) : problem;
}

std::string SearchRecord::problem() const { return not_seconds("seconds", seconds); }

std::string ExitsRecord::problem() const { return not_seconds("seconds", seconds); }

void convert_notes(Notes& notes) {
  const auto spent = take(notes, "spent"), taught = take(notes, "taught"), tuned = take(notes, "tuned");
  if ((spent || taught || tuned) && !notes.contains(std::string(TeachingNote::kName)))
    put_note(notes, TeachingNote{seconds_in(spent), seconds_in(taught), words_in(tuned.value_or("")), {}});
  const auto blocks = take(notes, "exits blocks");
  if (blocks && !notes.contains(std::string(ExitsNote::kName))) put_note(notes, ExitsNote{*blocks});
}

}  // namespace limber
