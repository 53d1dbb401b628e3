#include "actors/protocol/divergence_text.hpp"

#include <gtest/gtest.h>

namespace weft::divergence_text_test {
namespace {

constexpr const char* kSum = "  %2 = reduce %0 {kind = add, dims = [0]} : f32[2]  // train.cpp:7\n";
constexpr const char* kMax = "  %2 = reduce %0 {kind = max, dims = [0]} : f32[2]  // train.cpp:7\n";

TEST(DivergenceText, NamesBothLinesAndThatReadsAreCollective) {
  ProgramSeen sync{.worker = 0, .run = 4, .text = kSum};
  ProgramSeen read{.worker = 1, .run = 4, .text = kMax};
  sync.site = "the sync at train.cpp:7";
  read.site = "the read at train.cpp:9";
  const std::string text = describe_divergence(sync, "worker 0 (pid 7)", read, "worker 1 (pid 8)");
  EXPECT_TRUE(text.starts_with(
      "worker 0 (pid 7) and worker 1 (pid 8) traced different programs for run 4, worker 0 for the "
      "sync at train.cpp:7, worker 1 for the read at train.cpp:9; the first line that differs is "
      "1"))
      << text;
  EXPECT_NE(text.find("reads are collective"), std::string::npos);
  read.site = "the sync at train.cpp:9";
  EXPECT_EQ(describe_divergence(sync, "a", read, "b").find("collective"), std::string::npos);
}

TEST(DivergenceText, NamesTheLastLinesOfLoopsOfDifferentLength) {
  const LoopEnded more{.worker = 0, .runs = 8, .last = "the read at train.cpp:9"};
  const LoopEnded less{.worker = 1, .runs = 7, .last = "the sync at train.cpp:7"};
  const std::string text = describe_uneven(more, "worker 0", less, "worker 1");
  EXPECT_TRUE(
      text.starts_with("worker 0 ended its loop after 8 programs, the last for the read at "
                       "train.cpp:9, but worker 1 "
                       "ended after 7, the last for the sync at train.cpp:7: "))
      << text;
  EXPECT_NE(text.find("reads are collective"), std::string::npos);
}

}  // namespace
}  // namespace weft::divergence_text_test
