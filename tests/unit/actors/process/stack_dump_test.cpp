#include "actors/process/stack_dump.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace weft::stack_dump_test {
namespace {

TEST(StackDump, ACallIsShownAsInTheSource) {
  EXPECT_EQ(readable_call("/opt/app(_ZN4weft7Trainer3fitEv+0x12a)[0x55d0a1]"),
            "weft::Trainer::fit()+0x12a in app");
  EXPECT_EQ(readable_call("/lib/libc.so.6(clone+0x41)[0x7f01]"), "clone+0x41 in libc.so.6");
  EXPECT_EQ(readable_call("/lib/libc.so.6(clone+0x41) [0x7f01]"), "clone+0x41 in libc.so.6");
  EXPECT_EQ(readable_call("/opt/app (2)/app(+0x1234)[0x55d0]"), "?+0x1234 in app");
  EXPECT_EQ(readable_call("2026-11-23 info weft.worker loop ended: well"), "");
  EXPECT_EQ(readable_call(""), "");
}

TEST(StackDump, TheLastStackOfALogIsFound) {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("weft-log-{}", ::getpid());
  EXPECT_EQ(last_stack(file), "");
  std::ofstream(file) << "the stack of this thread, innermost call first:\n"
                         "/opt/app(old+0x1)[0x1]\n"
                         "a line of the log\n"
                         "the stack of this thread, innermost call first:\n"
                         "/opt/app(_Z5trainv+0x2)[0x2]\n"
                         "/opt/app(main+0x3)[0x3]\n"
                         "another line (of the log)\n";
  EXPECT_EQ(last_stack(file), "  train()+0x2 in app\n  main+0x3 in app");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace weft::stack_dump_test
