// Every kind of record and note, each with something in all of its fields.
#include "record/records.h"

#include <gtest/gtest.h>

#include <cmath>

#include "record/adapt_records.h"
#include "record/elastic_records.h"
#include "record/evaluation.h"
#include "record/record_file.h"
#include "record/serve_records.h"

namespace limber {
namespace {

// Fills the fields of whatever it is given, each with another value.
class Filler {
 public:
  template <typename T>
  void operator()(std::string_view /*key*/, T& value, Need /*need*/ = Need::kRequired) {
    fill(value);
    ++fields_;
  }
  int fields() const { return fields_; }

 private:
  void fill(bool& value) { value = true; }
  void fill(int64_t& value) { value = 1; }
  void fill(uint64_t& value) { value = ++count_; }
  void fill(double& value) { value = 0.25 + static_cast<double>(++count_); }
  void fill(std::string& value) { value = fmt::format("text {}", ++count_); }
  template <typename T>
  void fill(std::optional<T>& value) {
    fill(value.emplace());
  }
  template <typename T>
  void fill(std::vector<T>& list) {
    for (int i = 0; i < 2; ++i) fill(list.emplace_back());
  }
  template <typename T>
  void fill(std::map<std::string, T>& map) {
    fill(map["key"]);
  }
  template <typename T>
  void fill(T& part) {
    T::fields(part, *this);
  }

  uint64_t count_ = 0;
  int fields_ = 0;
};

template <typename T>
T filled() {
  T record;
  Filler filler;
  T::fields(record, filler);
  EXPECT_GT(filler.fields(), 0);
  return record;
}
template <>
SelectionRecord filled() {
  return {.step = 3, .rho = 0.5, .chosen = {0, 1}, .importance = {0.25, 1}, .budget_s = 2, .left = 4};
}
template <>
EvaluationRecord filled() {
  EvaluationRecord record{.model = "m", .data = "d", .images = 2, .correct_top5 = 2, .loss = 0.5};
  record.classes = {"a", "b"};
  record.confusion = {{0, 0, 1}, {1, 0, 1}};
  record.bins = {{2, 1, 1.5}};
  record.worst = {{"a.png", 1, 0, 0.75, "iVBORw0K"}};
  return record;
}

template <typename T>
class Records : public testing::Test {};
using RecordTypes =
    testing::Types<StartRecord, ResumeRecord, EventRecord, EpochRecord, TensorsRecord, SurveyRecord,
                   SelectionRecord, ChoiceRecord, EvaluationRecord, SearchRecord, ExitsRecord, SwitchRecord,
                   FollowedRecord, ServedRecord, AdaptWindowRecord, AdaptEventRecord, AdaptEndRecord>;
TYPED_TEST_SUITE(Records, RecordTypes);

TYPED_TEST(Records, AreReadAsTheyWereWritten) {
  const auto record = filled<TypeParam>();
  const std::string line = record_line(record, 1.5);
  const RecordFile file = parse_records(line + "\n", "f");
  ASSERT_TRUE(file.damaged.empty()) << file.damaged[0];
  ASSERT_EQ(file.lines.size(), 1U);
  ASSERT_TRUE(file.lines[0].template is<TypeParam>());
  const auto read = file.lines[0].template as<TypeParam>();
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(record_line(*read, 1.5), line);
  EXPECT_EQ(file.lines[0].time, 1.5);
}

template <typename T>
class AllNotes : public testing::Test {};
using NoteTypes = testing::Types<TeachingNote, ExitsNote>;
TYPED_TEST_SUITE(AllNotes, NoteTypes);

TYPED_TEST(AllNotes, AreReadAsTheyWereWritten) {
  const auto note = filled<TypeParam>();
  Notes notes;
  put_note(notes, note);
  EXPECT_EQ(format_fields(read_note<TypeParam>(notes)), format_fields(note));
  notes.begin()->second = "nonsense";
  EXPECT_EQ(format_fields(read_note<TypeParam>(notes)), format_fields(TypeParam()));
}

TEST(RecordProblems, SecondsAreSeconds) {
  EXPECT_EQ(SearchRecord{.seconds = -1}.problem(), "'seconds' should be a number of seconds");
  EXPECT_NE(ExitsRecord{.seconds = NAN}.problem(), "");
  EXPECT_EQ((TeachingNote{.spent_s = 1, .taught_s = -1}.problem()),
            "'taught_s' should be a number of seconds");
}

TEST(Notes, OfOldFoldersAreConverted) {
  Notes notes = {
      {"taught", "12.5"}, {"tuned", "a=b,c=d  original "}, {"exits blocks", "a=tuned"}, {"other", "x"}};
  convert_notes(notes);
  EXPECT_EQ(notes.size(), 3U);
  const auto teaching = read_note<TeachingNote>(notes);
  EXPECT_EQ(teaching.spent_s, 0);
  EXPECT_EQ(teaching.taught_s, 12.5);
  EXPECT_EQ(teaching.tuned, (std::vector<std::string>{"a=b,c=d", "original"}));
  EXPECT_EQ(read_note<ExitsNote>(notes).blocks, "a=tuned");
  const Notes before = notes;
  convert_notes(notes);
  EXPECT_EQ(notes, before);
  notes["spent"] = "99";  // somebody's, beside a new one: that one counts
  convert_notes(notes);
  EXPECT_EQ(notes, before);
  for (const char* text : {"", "nonsense", "-5", "nan", "1e999"}) {
    Notes damaged = {{"spent", text}};
    convert_notes(damaged);
    EXPECT_EQ(read_note<TeachingNote>(damaged).spent_s, 0) << text;
  }
}

}  // namespace
}  // namespace limber
