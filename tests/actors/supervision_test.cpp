/// Tests when MeshSupervision allows a restart, and after which delay.

#include <gtest/gtest.h>

#include <chrono>

#include "actors/keeper/mesh_supervision.hpp"

namespace weft::supervision_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const MeshSupervision::Time kBegin{};

TEST(ActorSupervision, AllowsNoRestartUnlessToldTo) {
  MeshSupervision mesh(Supervision{});
  EXPECT_FALSE(mesh.on_failure(kBegin));
  EXPECT_EQ(mesh.restarts(), 0);
}

TEST(ActorSupervision, CountsTheRestartsOfItsWholeLife) {
  MeshSupervision mesh({.max_restarts = 2});
  EXPECT_TRUE(mesh.on_failure(kBegin));
  EXPECT_TRUE(mesh.on_failure(kBegin + seconds(1000)));
  EXPECT_FALSE(mesh.on_failure(kBegin + seconds(1'000'000)));
  EXPECT_EQ(mesh.restarts(), 2);
}

TEST(ActorSupervision, ForgetsRestartsThatAreOlderThanItsWindow) {
  MeshSupervision mesh({.max_restarts = 2, .within_s = 10});
  EXPECT_TRUE(mesh.on_failure(kBegin));
  EXPECT_TRUE(mesh.on_failure(kBegin + seconds(8)));
  EXPECT_FALSE(mesh.on_failure(kBegin + seconds(10)));
  EXPECT_TRUE(mesh.on_failure(kBegin + seconds(11)));
  EXPECT_FALSE(mesh.on_failure(kBegin + seconds(12)));
}

TEST(ActorSupervision, DoublesItsDelayUpToHalfAMinute) {
  MeshSupervision mesh({.max_restarts = -1, .within_s = 1000, .backoff_s = 0.25});
  EXPECT_EQ(mesh.on_failure(kBegin), milliseconds(250));
  EXPECT_EQ(mesh.on_failure(kBegin), milliseconds(500));
  EXPECT_EQ(mesh.on_failure(kBegin), seconds(1));
  for (int i = 0; i < 100; ++i) mesh.on_failure(kBegin);
  EXPECT_EQ(mesh.on_failure(kBegin), seconds(30));
  EXPECT_EQ(mesh.on_failure(kBegin + seconds(2000)), milliseconds(250));
}

TEST(ActorSupervision, WithoutALimitForgetsTheDelayAfterAMinute) {
  MeshSupervision mesh({.max_restarts = -1, .backoff_s = 0.25});
  mesh.on_failure(kBegin);
  EXPECT_EQ(mesh.on_failure(kBegin + seconds(59)), milliseconds(500));
  EXPECT_EQ(mesh.on_failure(kBegin + seconds(200)), milliseconds(250));
}

}  // namespace
}  // namespace weft::supervision_test
