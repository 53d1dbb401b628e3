#include "actors/protocol/whereabouts.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace weft::whereabouts_test {
namespace {

ActorRow loop_at(int worker, const char* line) {
  ActorRow row;
  row.kind = ActorKind::worker;
  row.worker = worker;
  row.pid = 100 + worker;
  row.step = 3;
  row.source = line;
  return row;
}

std::optional<Failure> divergence_of(int worker) {
  return Failure{.code = Errc::program_divergence, .worker = worker, .pid = 100 + worker};
}

TEST(WorkerApart, IsNamedByADivergenceAndNotTheOneThatWasSeenFirst) {
  const std::vector<ActorRow> rows{loop_at(0, "a.cpp:9"), loop_at(1, "a.cpp:5"),
                                   loop_at(2, "a.cpp:9")};
  const auto failure = with_worker_apart(divergence_of(2), rows);
  EXPECT_EQ(failure->worker, 1);
  EXPECT_EQ(failure->pid, 101);
  EXPECT_EQ(failure->step, 3U);
}

TEST(WorkerApart, IsNobodyWhereTwoDisagree) {
  const std::vector<ActorRow> rows{loop_at(0, "a.cpp:9"), loop_at(1, "a.cpp:5")};
  EXPECT_EQ(with_worker_apart(divergence_of(1), rows)->worker, 1);
}

TEST(WorkerApart, IsNobodyWhereAllAreAtOneLine) {
  const std::vector<ActorRow> rows{loop_at(0, "a.cpp:9"), loop_at(1, "a.cpp:9"),
                                   loop_at(2, "a.cpp:9")};
  EXPECT_EQ(with_worker_apart(divergence_of(2), rows)->worker, 2);
}

TEST(WorkerApart, IsNotAskedForByOtherFailures) {
  const std::vector<ActorRow> rows{loop_at(0, "a.cpp:9"), loop_at(1, "a.cpp:5"),
                                   loop_at(2, "a.cpp:9")};
  const Failure lost{.code = Errc::peer_lost, .worker = 2};
  EXPECT_EQ(with_worker_apart(lost, rows)->worker, 2);
  EXPECT_FALSE(with_worker_apart({}, rows).has_value());
}

}  // namespace
}  // namespace weft::whereabouts_test
