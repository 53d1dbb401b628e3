/// Counts the messages between the trainer and its workers, whose number must depend only on the
/// loop.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "inspect/snapshot/snapshot_reader.hpp"
#include "tests/jobs/run_loop.hpp"

namespace weft::messages_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using Counts = std::map<std::string, int>;

constexpr int kSteps = 5;  // few enough steps for the first lease to cover them all

/// Runs the same program in all steps.
Loop counts{"test.counts_messages", [](TrainContext& ctx) {
              Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
              for (int step = 0; step < kSteps; ++step) {
                sum.assign(sum + 1);
                sync();
              }
              ctx.report({{"sum", sum.item()}});
            }};

/// At the end of the job, counts the messages in the trainer's event ring.
class CountMessages : public Callback {
 public:
  void on_start(const JobInfo& job) override { id_ = job.id; }
  void on_end(const Result&) override {
    const Snapshot job = SnapshotReader::of_job(id_).read({.events = true});
    for (const EventRing& ring : job.rings) {
      if (ring.kind != RingKind::link || ring.worker != -1) continue;
      EXPECT_EQ(ring.before, 0U);
      for (const Event& event : ring.events) {
        if (event.kind == EventKind::message_in) ++begun[std::string(event.text)];
        if (event.kind == EventKind::message_out) ++sent[std::string(event.text)];
      }
    }
  }
  Counts begun, sent;

 private:
  std::string id_;
};

/// In a job on one host, the trainer calls its host's functions directly, without messages.
TEST(Messages, OfAJobOnOneHostAreThoseOfItsLoops) {
  for (const int workers : {1, 2}) {
    const auto messages = std::make_shared<CountMessages>();
    expect_ok(run_loop(counts, workers, Config::object(), [&](TrainerOptions& options) {
      options.run.callbacks.push_back(messages);
    }));
    Counts begun{{"started", workers},
                 {"join", workers},
                 {"program", workers},
                 {"report", workers},
                 {"ended", workers}};
    Counts sent{{"start", workers}, {"grant", workers}, {"admit", workers}, {"stop", workers}};
    if (workers > 1) {
      begun["data"] = 3 * workers;  // each worker sends hashes of its inputs in runs 1, 2 and 4
      sent["asked"] = workers - 1;
      sent["peerended"] = workers * (workers - 1);
    }
    // The job may end before the actor has handled all messages about processes that have ended.
    EXPECT_LE(messages->begun["process"], workers);
    messages->begun.erase("process");
    EXPECT_EQ(messages->begun, begun) << workers;
    EXPECT_EQ(messages->sent, sent) << workers;
  }
}

}  // namespace
}  // namespace weft::messages_test
