/// Tests errors of Session, and Sessions that outlive their threads or are moved to other threads.

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor.hpp>
#include <weft/session.hpp>
#include <weft/weft.hpp>

#include "tests/actors/session_modules.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::session_errors_test {
namespace {

using testing::DeepNet;
using testing::expect_error;
using testing::ones;
using testing::row;
using testing::Scale;
using testing::scaled;
using testing::Source;
using testing::TemporaryFolder;

TEST(SessionErrors, RefusesModulesThatDoNotFit) {
  const Scale net;
  const Source source(net);
  Session session;
  session.bind(net, source.newest());
  const Scale other("teacher");
  expect_error(Errc::not_found,
               {"Session::bind: the module has 'teacher.w' f32[2], but version 1 has no tensor of "
                "this name, only w: publish all parameters and buffers",
                "session_errors_test.cpp"},
               [&] { session.bind(other, source.newest()); });
  const Scale longer("", {3});
  expect_error(Errc::invalid_argument,
               {"Session::bind: the module has 'w' f32[3], but version 1 has it as f32[2]: make "
                "the module with the sizes and dtypes",
                "session_errors_test.cpp"},
               [&] { session.bind(longer, source.newest()); });
  expect_error(Errc::invalid_argument,
               {"Session::bind: the view is empty: pass what Parameters::newest()"},
               [&] { session.bind(net, ParameterView()); });
  expect_error(Errc::invalid_argument,
               {"SessionOptions: memory_max is 1000: expected 1048576 (1 MiB) to"},
               [] { const Session small({.memory_max = 1000}); });
  EXPECT_EQ(net(ones()).to_vector(), scaled(1));
  // bind() refuses a buffer that isn't published, because it would keep its initial value.
  const DeepNet deep;
  std::vector<PublishedTensor> parameters;
  for (const Parameter& each : deep.parameters()) {
    parameters.push_back({.name = each.name(), .type = each.type()});
  }
  const Source without(parameters);
  expect_error(Errc::not_found, {"'norm.running_mean'"},
               [&] { session.bind(deep, without.newest()); });
}

TEST(SessionErrors, DoesNotTrain) {
  DeepNet net;
  std::vector<PublishedTensor> tensors = Source::tensors_of(net);
  const Source source(tensors);
  Session session;
  session.bind(net, source.newest());
  const Tensor x = to_device(row(24), {2, 12});
  expect_error(Errc::invalid_argument,
               {"'norm.running_mean' was bound by Session::bind(), so its value is that of a "
                "version and can't be set: call eval()"},
               [&] { net(x); });
  net.eval();
  session.bind(net, source.newest());
  const Tensor loss = mean(net(x));
  expect_error(Errc::invalid_argument,
               {"grad: a Session computes no gradients: its parameters have the values that a job "
                "publishes; train in that job's loop (at session_errors_test.cpp:"},
               [&] { grad(loss, net.parameters()); });
}

TEST(SessionErrors, SaysWhenItsMemoryIsFull) {
  const Scale net("", {1 << 20});
  const Source source(net);
  Session session({.memory_max = 4 << 20});
  expect_error(Errc::no_space, {"4194304 bytes"}, [&] { session.bind(net, source.newest()); });
  const Scale small;
  const Source other(small);
  session.bind(small, other.newest());
  EXPECT_EQ(small(ones()).to_vector(), scaled(1));
}

TEST(SessionErrors, IsForOneThread) {
  const Scale net;
  const Source source(net);
  auto session = std::make_optional<Session>();
  std::jthread([&] {
    session->bind(net, source.newest());
    EXPECT_EQ(net(ones()).to_vector(), scaled(1));
  }).join();
  expect_error(Errc::invalid_argument,
               {"Session: it was first bound on thread ", ", but this is thread ",
                ": make a Session for each thread (at session_errors_test.cpp:"},
               [&] { session->bind(net, source.newest()); });
  expect_error(Errc::invalid_argument,
               {"must run on the thread of their loop or Session, which is "},
               [&] { net(ones()); });
  session.reset();  // works although the Session's thread has ended
  expect_error(Errc::not_found, {"or after Session::bind() on the same thread"},
               [&] { net(ones()); });
}

TEST(SessionErrors, MayBeDestroyedByAnotherThread) {
  const Scale net;
  const Source source(net);
  auto session = std::make_optional<Session>();
  std::atomic<int> stage = 0;
  const auto wait_for = [&](int wanted) {
    for (int now = stage; now < wanted; now = stage) stage.wait(now);
  };
  const auto reach = [&](int next) {
    stage = next;
    stage.notify_all();
  };
  std::jthread thread([&] {
    session->bind(net, source.newest());
    const Tensor y = net(ones());
    reach(1);
    wait_for(2);
    EXPECT_EQ(y.to_vector(), scaled(1));
    Session next;
    next.bind(net, source.newest());
    EXPECT_EQ(net(ones()).to_vector(), scaled(1));
  });
  wait_for(1);
  session.reset();
  reach(2);
}

TEST(SessionErrors, IsNotForTrainingLoops) {
  const TemporaryFolder folder;
  const Result result =
      Trainer(
          [](TrainContext& ctx) {
            Scale net;
            const Publisher publisher(ctx, "net", net.parameters());
            Session session;
            session.bind(net, Parameters(ctx.job_id(), "net").newest());
          },
          {.scaling = {.num_workers = 0}, .run = {.name = "inside", .storage_path = folder.path()}})
          .fit();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error->message.find(
                "Session: this thread runs a training loop, whose tensors are on the chips of its "
                "job: use the loop's own modules here, or bind the Session on another thread (at "
                "session_errors_test.cpp:"),
            std::string::npos)
      << result.error->message;
}

}  // namespace
}  // namespace weft::session_errors_test
