#include "actors/link/watched_actor.hpp"

#include <gtest/gtest.h>

#include <semaphore>

#include "actors/link/system.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/board/board.hpp"

namespace weft::watched_actor_test {
namespace {

using Worker = caf::typed_actor<On<run_a, int>>;

struct WorkerData {
  const char* name = "test.worker";
};

TEST(WatchedActor, ShowsItsMailboxWhileItIsStuckInAMessage) {
  const Board board = Board::anonymous({.job = "j", .num_chips = 0});
  BlackBoxWriter box = BlackBoxWriter::anonymous({.job = "j", .num_workers = 1, .num_chips = 0});
  std::binary_semaphore stuck{0};
  std::binary_semaphore released{0};
  std::binary_semaphore ended{0};
  System system;
  const Worker worker = system.caf().spawn<WatchedActor<Worker, WorkerData>>(
      Recorder(board.worker(0), box.link(0)), [&](auto*) -> Worker::behavior_type {
        return {[&](run_a, int number) {
          if (number == 4) {
            stuck.release();
            released.acquire();
          }
          if (number == 100) ended.release();
        }};
      });
  for (int number = 1; number <= 4; ++number) post(worker, run_a_v, number);
  stuck.acquire();
  for (int number = 5; number <= 100; ++number) post(worker, run_a_v, number);
  const ActorRow row = board.read(1);
  EXPECT_EQ(row.messages_came, 100U);
  EXPECT_EQ(row.messages_begun, 4U);
  EXPECT_EQ(row.messages_done, 3U);
  EXPECT_EQ(row.mailbox, 96U);
  EXPECT_EQ(row.last_message, "run");
  released.release();
  ended.acquire();
  EXPECT_EQ(board.read(1).mailbox, 0U);
  caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
}

}  // namespace
}  // namespace weft::watched_actor_test
