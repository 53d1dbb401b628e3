#include "transport/format/saved_notes.hpp"

#include <gtest/gtest.h>

namespace weft::saved_notes_test {
namespace {

TEST(SavedNotes, AreWhatWasSavedOrNothing) {
  const SavedNotes notes{.metrics = {{"loss", 0.5}, {"tag", "x"}},
                         .user = {1, "two"},
                         .best_by = "loss",
                         .is_max_best = true};
  const SavedNotes again = notes_of({.user_json = to_user_json(notes)});
  EXPECT_EQ(again.metrics, notes.metrics);
  EXPECT_EQ(again.user, notes.user);
  EXPECT_EQ(again.best_by, "loss");
  EXPECT_TRUE(again.is_max_best);
  EXPECT_EQ(rating_of(again, "loss"), 0.5);
  EXPECT_FALSE(rating_of(again, "tag"));
  EXPECT_FALSE(rating_of(again, "absent"));
  for (const char* other : {"", "nothing", "[1]", "3", R"({"metrics":3})", R"({"best_by":3})"}) {
    const SavedNotes none = notes_of({.user_json = other});
    EXPECT_FALSE(rating_of(none, "loss")) << other;
    EXPECT_EQ(none.best_by, "") << other;
  }
}

}  // namespace
}  // namespace weft::saved_notes_test
