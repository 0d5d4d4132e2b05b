#include "record/master_note.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

TEST(MasterNote, IsReadBackAsItWasWritten) {
  MasterNote note{.spent_s = 3, .trained_s = 2, .images = "5 images", .count = 5};
  note.levels = {{1, 1.01, 0.9, 0.89}, {0.3, 0.1, 0.8, 0.2}};
  Notes notes;
  put_note(notes, note);
  const auto again = find_note<MasterNote>(notes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(format_fields(**again), format_fields(note));
  EXPECT_EQ((*again)->levels[1].by_size, 0.2);
}

TEST(MasterNote, RefusesWhatCannotBeTrue) {
  const auto problem = [](auto change) {
    MasterNote note{.levels = {{0.5, 0.3, 0.8, 0.7}}};
    change(note);
    const auto read = parse_fields<MasterNote>(format_fields(note));
    EXPECT_EQ(read.status().code(), Code::kCorrupt);
    return std::string(read.status().message());
  };
  EXPECT_NE(problem([](MasterNote& n) { n.version = 2; }).find("'version' is 2"), std::string::npos);
  EXPECT_NE(problem([](MasterNote& n) { n.levels[0].share = 0; }).find("'share'"), std::string::npos);
  EXPECT_NE(problem([](MasterNote& n) { n.levels[0].accuracy = 1.5; }).find("'accuracy'"), std::string::npos);
  EXPECT_NE(problem([](MasterNote& n) { n.levels[0].operations = 0; }).find("'operations'"),
            std::string::npos);
  EXPECT_NE(problem([](MasterNote& n) { n.spent_s = -1; }).find("'spent_s'"), std::string::npos);
}

}  // namespace
}  // namespace limber
