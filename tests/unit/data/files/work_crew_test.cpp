#include "data/files/work_crew.hpp"

#include <sched.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace weft::work_crew_test {
namespace {

TEST(WorkCrew, DoesEachPieceOnce) {
  std::atomic<int> sum{0};
  WorkCrew(3).each(100, [&](std::size_t i) { sum += static_cast<int>(i); });
  EXPECT_EQ(sum, 4950);
  WorkCrew(3).each(0, [](std::size_t) { FAIL(); });
}

TEST(WorkCrew, OneIdleThreadDoesWhatIsNotUrgent) {
  Urgency urgency(false);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  WorkCrew(4, &urgency).each(20, [&](std::size_t) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE);
  });
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST(WorkCrew, OthersDoTheRestOnceItIsUrgent) {
  Urgency urgency(false);
  std::latch others(1);
  std::atomic<int> done{0};
  WorkCrew(2, &urgency).each(10, [&](std::size_t i) {
    if (i == 0) {
      urgency.raise();
      others.wait();  // holds up the thread of idle priority
    } else {
      EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
      if (i == 9) others.count_down();
    }
    ++done;
  });
  EXPECT_EQ(done, 10);
}

TEST(WorkCrew, RethrowsWhatTheIdleThreadThrows) {
  Urgency urgency(false);
  std::atomic<int> done{0};
  const auto work = [&](std::size_t i) {
    if (i == 3) throw std::runtime_error("disk full");
    ++done;
  };
  EXPECT_THROW(WorkCrew(2, &urgency).each(10, work), std::runtime_error);
  EXPECT_EQ(done, 3);
}

}  // namespace
}  // namespace weft::work_crew_test
