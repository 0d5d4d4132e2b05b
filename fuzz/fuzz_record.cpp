// Whatever a file of records holds, lines are told apart, every kind is read or refused, and a history gives
// a page or an error.
#include <cstdint>

#include "record/record_file.h"
#include "report/evaluation_page.h"
#include "report/training_page.h"

namespace {

// What can be read can be written, and is then read as the same.
template <typename T>
void read_as(const limber::RecordLine& line) {
  const auto record = line.as<T>();
  if (!record.ok()) return;
  const std::string text = format_fields(*record);
  const auto again = limber::parse_fields<T>(text);
  LIMBER_ASSERT(again.ok() && format_fields(*again) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const RecordLine& line : parse_records(text, "history.jsonl").lines) {
    read_as<RunHeader>(line);
    read_as<EventRecord>(line);
    read_as<EpochRecord>(line);
    read_as<TensorsRecord>(line);
    read_as<SurveyRecord>(line);
    read_as<SelectionRecord>(line);
    read_as<ChoiceRecord>(line);
    read_as<EvaluationRecord>(line);
    if (const auto evaluation = line.as<EvaluationRecord>(); evaluation.ok())
      LIMBER_ASSERT(!evaluation_page(*evaluation).empty());
  }
  const auto log = parse_history(text, "history.jsonl");
  if (log.ok()) LIMBER_ASSERT(!training_page({*log, *log}).empty());
  return 0;
}
