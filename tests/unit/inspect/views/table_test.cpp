#include "inspect/views/table.hpp"

#include <gtest/gtest.h>

namespace weft::table_test {
namespace {

TEST(Table, MakesColumnsAsWideAsTheyHaveToBe) {
  Table table({{"name"}, {"bytes", Align::right}, {""}});
  EXPECT_TRUE(table.empty());
  table.add({"é", "5", ""});
  table.add({"temporaries", "123456", "of 7"});
  EXPECT_EQ(table.to_string(),
            "name          bytes\n"
            "é                 5\n"
            "temporaries  123456  of 7\n");
}

TEST(Table, KeepsARowOnItsLine) {
  Table table({{"error"}, {"step"}});
  table.add({"a\nb", "1"});
  EXPECT_EQ(table.to_string(),
            "error   step\n"
            "a\\x0ab  1\n");
}

}  // namespace
}  // namespace weft::table_test
