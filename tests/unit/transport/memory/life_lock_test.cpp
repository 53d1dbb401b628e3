#include "transport/memory/life_lock.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "tests/support/child_process.hpp"

namespace weft::life_lock_test {
namespace {

using testing::ChildProcess;

TEST(LifeLock, IsHeldByOneUntilItIsDestroyed) {
  const Segment segment = Segment::anonymous(4096);
  std::optional<LifeLock> first = LifeLock::take(segment, 0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(LifeLock::take(segment, 0));
  first.reset();
  EXPECT_TRUE(LifeLock::take(segment, 0));
}

TEST(LifeLock, SeesTheOtherBytesOfItsSegment) {
  const Segment segment = Segment::anonymous(4096);
  const std::optional<LifeLock> mine = LifeLock::take(segment, 0);
  EXPECT_FALSE(mine->another_holds(1));
  std::optional<LifeLock> other = LifeLock::take(segment, 1);
  ASSERT_TRUE(other);
  EXPECT_TRUE(mine->another_holds(1));
  EXPECT_TRUE(other->another_holds(0));
  other.reset();
  EXPECT_FALSE(mine->another_holds(1));
}

TEST(LifeLock, MovesWithItsOwner) {
  const Segment segment = Segment::anonymous(4096);
  std::optional<LifeLock> first = LifeLock::take(segment, 0);
  {
    const LifeLock second = std::move(*first);
    first.reset();
    EXPECT_FALSE(LifeLock::take(segment, 0));
  }
  EXPECT_TRUE(LifeLock::take(segment, 0));
}

TEST(LifeLock, SurvivesTheSegmentsName) {
  const std::string name = "weft-" + testing::unique_job() + "-lock";
  const Segment segment = Segment::create(name, 4096);
  Segment::remove(name);
  const std::optional<LifeLock> mine = LifeLock::take(segment, 0);
  EXPECT_TRUE(mine);
  EXPECT_FALSE(LifeLock::take(segment, 0));
}

#ifndef WEFT_THREAD_SANITIZER
TEST(LifeLock, GoesWithAProcessThatIsKilled) {
  const Segment segment = Segment::anonymous(4096);
  ChildProcess child([&] {
    const std::optional<LifeLock> held = LifeLock::take(segment, 1);
    pause();
  });
  const std::optional<LifeLock> mine = LifeLock::take(segment, 0);
  while (!mine->another_holds(1)) sched_yield();
  child.kill();
  EXPECT_EQ(child.join(), "killed by signal 9");
  EXPECT_FALSE(mine->another_holds(1));
}
#endif

}  // namespace
}  // namespace weft::life_lock_test
