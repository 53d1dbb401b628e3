#include "transport/resume/command_journal.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::command_journal_test {
namespace {

using testing::TemporaryFolder;

TEST(CommandJournal, HasTheLastLineOfEachCommand) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_journal(folder.path()).empty());
  std::vector<StoredCommand> commands{
      {.number = 1, .step = 4, .name = "rate", .payload = "0.5"},
      {.number = 2, .step = 4, .name = "save", .payload = "null"},
      {.number = 3, .step = 9, .name = "eval", .payload = R"({"a":["x"]})"}};
  add_to_journal(folder.path(), commands);
  EXPECT_EQ(read_journal(folder.path()), commands);
  commands[1].step = 5;
  commands[1].is_read = true;
  add_to_journal(folder.path(), {&commands[1], 1});
  EXPECT_EQ(read_journal(folder.path()), commands);
}

TEST(CommandJournal, MayEndWithinALine) {
  const TemporaryFolder folder;
  const StoredCommand command{.number = 7, .step = 1, .name = "x", .payload = "1"};
  add_to_journal(folder.path(), {&command, 1});
  std::ofstream(folder.path() + "/commands.jsonl", std::ios::app) << R"({"number":8,"st)";
  EXPECT_EQ(read_journal(folder.path()), std::vector<StoredCommand>{command});
}

TEST(CommandJournal, SaysWhyItCantBeWritten) {
  const StoredCommand command{.number = 1};
  testing::expect_error(Errc::io,
                        {"the journal of commands /no/such/folder/commands.jsonl: No such"}, [&] {
                          add_to_journal("/no/such/folder", {&command, 1});
                        });
}

}  // namespace
}  // namespace weft::command_journal_test
