// Small state that a manifest keeps by name, beside what it is about: where a search stands, which images
// were held out. Each note is a type with its name and declared fields (fields.h).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "record/fields.h"

namespace limber {

using Notes = std::map<std::string, std::string>;

template <typename T>
void put_note(Notes& notes, const T& note) {
  notes[std::string(T::kName)] = format_fields(note);
}

// Nothing where there is none. kCorrupt naming the note when it cannot be read: an older version may have
// written it otherwise.
template <typename T>
Result<std::optional<T>> find_note(const Notes& notes) {
  const auto text = notes.find(std::string(T::kName));
  if (text == notes.end()) return std::optional<T>();
  auto note = parse_fields<T>(text->second);
  if (!note.ok()) return note.status().in(fmt::format("note '{}'", T::kName));
  return std::optional<T>(*std::move(note));
}

// For notes that work can go on without: as it is made where there is none, or none that can be read.
template <typename T>
T read_note(const Notes& notes) {
  auto note = find_note<T>(notes);
  return note.ok() && *note ? **std::move(note) : T();
}

}  // namespace limber
