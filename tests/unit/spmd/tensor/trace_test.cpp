#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include <weft/nn/module.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/tensor/loop_threads.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::trace_test {
namespace {

using testing::expect_error;
using testing::f32;
using testing::InterpretRuntime;
using Floats = std::vector<float>;

class Trace : public testing::TensorTest {
 protected:
  const Program& last() const { return runtime_.programs.back(); }
};

TEST_F(Trace, RunsNothingBeforeASync) {
  const Tensor x = f32({1, 2}, {2});
  const Tensor y = x + 1;
  EXPECT_EQ(runtime_.programs.size(), 0U);
  sync();
  EXPECT_EQ(runtime_.programs.size(), 1U);
  EXPECT_EQ(runtime_.steps, 1);
  EXPECT_EQ(y.to_vector(), (Floats{2, 3}));
  EXPECT_EQ(runtime_.programs.size(), 1U);
}

TEST_F(Trace, SyncOfNothingOnlyEndsTheStep) {
  const Tensor x = f32({1, 2}, {2});
  { const Tensor dropped = x + 1; }
  sync();
  EXPECT_EQ(runtime_.programs.size(), 0U);
  EXPECT_EQ(runtime_.steps, 1);
}

TEST_F(Trace, LiveHandlesAreTheOutputsInOrderOfCreation) {
  const Tensor x = f32({1, 2}, {2});
  const Tensor first = x + 1;
  Tensor dropped = x * 5;
  const Tensor second = dropped * first;
  const Tensor third = sum(x);
  dropped = Tensor();
  sync();
  ASSERT_EQ(last().outputs.size(), 3U);
  EXPECT_EQ(last().outputs[0].name, "out.0");
  EXPECT_EQ(last().outputs[2].name, "out.2");
  EXPECT_EQ(first.to_vector(), (Floats{2, 3}));
  EXPECT_EQ(second.to_vector(), (Floats{10, 30}));
  EXPECT_EQ(third.item(), 3);
}

TEST_F(Trace, AValueComputedEarlierIsAnInputAndNoOutput) {
  const Tensor x = f32({1, 2}, {2});
  const Tensor y = x + 1;
  sync();
  const Tensor z = y * 2;
  sync();
  ASSERT_EQ(last().inputs.size(), 1U);
  EXPECT_EQ(last().outputs.size(), 1U);
  EXPECT_EQ(z.to_vector(), (Floats{4, 6}));
}

TEST_F(Trace, InputsStandInOrderOfFirstUseWithCanonicalNames) {
  const Parameter w = make_parameter("fc.weight", Floats{1, 2}, {2});
  const Tensor a = f32({1, 2}, {2});
  const Tensor b = f32({3, 4}, {2});
  const Tensor y = b * scalar(0.5) + a * scalar(2) + w + b;
  sync();
  std::vector<std::string> names;
  for (const ProgramInput& input : last().inputs) names.push_back(input.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"data.0", "scalar.0", "data.1", "scalar.1", "fc.weight"}));
  EXPECT_EQ(last().inputs[1].kind, InputKind::runtime_scalar);
  EXPECT_EQ(last().inputs[4].kind, InputKind::param);
  EXPECT_EQ(y.to_vector(), (Floats{1.5F + 2 + 1 + 3, 2 + 4 + 2 + 4}));
}

TEST_F(Trace, UnmarkedInputsAndOutputsAreOpenAndSingleElementsReplicated) {
  const Parameter w = make_parameter("w", Floats{1, 2}, {2});
  const Tensor y = f32({1, 2}, {2}) + w;
  const Tensor total = sum(y, {}, true) * scalar(2);
  sync();
  EXPECT_EQ(last().inputs[0].sharding, Sharding::open(1));
  EXPECT_EQ(last().inputs[1].sharding, Sharding::open(1));
  EXPECT_EQ(last().inputs[2].sharding, Sharding::closed());
  EXPECT_EQ(last().outputs[0].sharding, Sharding::open(1));
  EXPECT_EQ(last().outputs[1].sharding, Sharding::closed());
}

TEST_F(Trace, OpsCarryTheLineOfTheCall) {
  const Tensor x = f32({1, 2}, {2});
  const int line = __LINE__ + 1;
  const Tensor y = softmax(x * 2);
  sync();
  for (OpId op = 0; op < last().num_ops(); ++op) {
    EXPECT_EQ(last().loc(op), fmt::format("trace_test.cpp:{}", line)) << to_string(last().kind(op));
  }
}

TEST_F(Trace, ItemRunsWhatWasRecordedWithoutEndingTheStep) {
  const Tensor x = f32({1, 2}, {2});
  const Tensor y = x + 1;
  const Tensor total = sum(y);
  EXPECT_EQ(total.item(), 5);
  EXPECT_EQ(runtime_.steps, 0);
  EXPECT_EQ(last().outputs.size(), 2U);
  EXPECT_EQ(y.to_vector(), (Floats{2, 3}));
  EXPECT_EQ(runtime_.programs.size(), 1U);
}

TEST_F(Trace, ATensorReadBeforeTheSyncComesOutReplicated) {
  const Tensor x = f32({1, 2}, {2});
  const Tensor y = x + 1;
  const Tensor z = x + 2;
  EXPECT_EQ(z.to_vector(), (Floats{3, 4}));
  EXPECT_EQ(last().outputs[0].sharding, Sharding::open(1));
  EXPECT_EQ(last().outputs[1].sharding, Sharding::closed());
}

TEST_F(Trace, HostDataAreReadWithoutARun) {
  const Tensor x = f32({1, 2}, {2});
  const Parameter w = make_parameter("w", Floats{3, 4}, {2});
  const Tensor y = x + w;
  EXPECT_EQ(x.to_vector(), (Floats{1, 2}));
  EXPECT_EQ(w.to_vector(), (Floats{3, 4}));
  EXPECT_EQ(runtime_.programs.size(), 0U);
}

TEST_F(Trace, AParameterReadsAsAssignedAtOnceAndIsStoredAtTheSync) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  w.assign(w + 1);
  const Tensor doubled = w * 2;
  sync();
  ASSERT_EQ(last().outputs.size(), 2U);
  EXPECT_EQ(last().outputs[0].name, "w");
  EXPECT_EQ(last().outputs[0].updates, 0);
  EXPECT_EQ(doubled.to_vector(), (Floats{4, 6}));
  EXPECT_EQ(w.to_vector(), (Floats{2, 3}));
}

TEST_F(Trace, OnlyTheLastOfTwoAssignmentsIsStored) {
  Parameter w = make_parameter("w", Floats{1}, {1});
  w.assign(w + 1);
  w.assign(w * 10);
  sync();
  EXPECT_EQ(last().outputs.size(), 1U);
  EXPECT_EQ(w.item(), 20);
}

TEST_F(Trace, AParameterThatIsOnlyAssignedBecomesAnInput) {
  Parameter w = make_parameter("w", Floats{1, 2}, {2});
  w.assign(f32({5, 6}, {2}));
  sync();
  ASSERT_EQ(last().inputs.size(), 2U);
  EXPECT_EQ(last().inputs[1].name, "w");
  EXPECT_EQ(last().outputs[0].updates, 1);
  EXPECT_EQ(w.to_vector(), (Floats{5, 6}));
}

TEST_F(Trace, ParametersCanBeSwapped) {
  Parameter a = make_parameter("a", Floats{1}, {1});
  Parameter b = make_parameter("b", Floats{2}, {1});
  const Tensor old_a = a + 0;
  a.assign(b);
  b.assign(old_a);
  sync();
  EXPECT_EQ(a.item(), 2);
  EXPECT_EQ(b.item(), 1);
}

TEST_F(Trace, AnAssignedParameterCanBeReadBeforeTheSync) {
  Parameter w = make_parameter("w", Floats{1}, {1});
  w.assign(w + 1);
  EXPECT_EQ(w.item(), 2);
  EXPECT_EQ(runtime_.steps, 0);
  w.assign(w + 1);
  sync();
  EXPECT_EQ(w.item(), 3);
}

TEST_F(Trace, RefusesAnAssignmentOfAnotherType) {
  Parameter w = make_parameter("w", Floats{1}, {1});
  expect_error(Errc::invalid_argument,
               {"assign: the value f32[2] doesn't have the type of 'w' f32[1]", "trace_test.cpp:"},
               [&] {
                 w.assign(f32({1, 2}, {2}));
               });
}

TEST_F(Trace, RefusesTwoParametersOfOneName) {
  const Parameter a = make_parameter("w", Floats{1}, {1});
  const Parameter b = make_parameter("w", Floats{1}, {1});
  expect_error(Errc::invalid_argument, {"two parameters are named 'w'"}, [&] { a + b; });
}

TEST_F(Trace, GradOfAParameterIsTakenAtItsPresentValue) {
  Parameter w = make_parameter("w", Floats{3}, {1});
  w.assign(w + 1);
  const Tensor loss = sum(w * w);
  EXPECT_EQ(grad(loss, std::vector{w})[0].item(), 8);
}

TEST_F(Trace, RefusesTheGradOfALossThatASyncComputed) {
  const Tensor x = f32({1, 2}, {2});
  const Tensor loss = sum(x * x);
  sync();
  expect_error(Errc::invalid_argument, {"grad: the loss f32[] isn't being recorded"},
               [&] { grad(loss, std::vector{x}); });
}

/// A runtime whose next runs fail, as many as a test sets.
class FailingRuntime : public InterpretRuntime {
 public:
  RunResult run(const Program& program, const Fingerprint& key, std::span<const Binding> inputs,
                const RunSite& site) override {
    if (failures-- > 0) fail(Errc::timeout, "no answer");
    return InterpretRuntime::run(program, key, inputs, site);
  }
  int failures = 1;
};

TEST(TraceFailure, ARunThatThrewCanBeTriedAgain) {
  FailingRuntime runtime;
  const RuntimeScope scope(runtime);
  Parameter w = make_parameter("w", Floats{1}, {1});
  w.assign(w + 1);
  const Tensor y = w * 3;
  expect_error(Errc::timeout, {}, [] { sync(); });
  sync();
  EXPECT_EQ(runtime.programs.back().outputs.size(), 2U);
  EXPECT_EQ(y.item(), 6);
}

TEST(TraceScope, OpsOutsideOfALoopSayWhereTheyBelong) {
  const Tensor x = f32({1}, {1});
  const int line = __LINE__ + 1;
  const auto add = [&] { x + 1; };
  expect_error(Errc::not_found,
               {"training loop", "Trainer::fit()", fmt::format("trace_test.cpp:{}", line)}, add);
  expect_error(Errc::not_found, {"training loop"}, [] { sync(); });
  EXPECT_EQ(x.item(), 1);
}

TEST(TraceScope, ScopesNest) {
  InterpretRuntime outer;
  InterpretRuntime inner;
  const RuntimeScope outer_scope(outer);
  const Tensor x = f32({1}, {1});
  const Tensor y = x + 1;
  {
    const RuntimeScope inner_scope(inner);
    EXPECT_EQ((x + 2).item(), 3);
    EXPECT_EQ(outer.programs.size(), 0U);
  }
  EXPECT_EQ(y.item(), 2);
  EXPECT_EQ(inner.programs.size(), 1U);
}

TEST(TraceScope, ATensorThatWasNeverComputedCannotBeUsedLater) {
  InterpretRuntime runtime;
  Tensor lost;
  {
    const RuntimeScope scope(runtime);
    lost = f32({1}, {1}) + 1;
  }
  const RuntimeScope scope(runtime);
  expect_error(Errc::invalid_argument, {"f32[1] was never computed"}, [&] { lost + 1; });
  expect_error(Errc::invalid_argument, {"f32[1] was never computed"}, [&] { lost.item(); });
}

TEST(TraceScope, ATensorOfAnotherThreadIsRefusedWithBothThreadsAndLines) {
  set_thread_number([] { return int{::gettid()}; });
  InterpretRuntime here;
  const RuntimeScope scope(here);
  const int line = __LINE__ + 1;
  const Tensor y = f32({1}, {1}) + 1;
  std::jthread([&] {
    InterpretRuntime there;
    const RuntimeScope own(there);
    const std::string message =
        expect_error(Errc::invalid_argument,
                     {"f32[1] was recorded at trace_test.cpp:", " on thread ", "this is thread "},
                     [&] { y + 1; });
    EXPECT_NE(message.find(fmt::format("trace_test.cpp:{} on thread", line)), std::string::npos);
  }).join();
}

TEST(TraceScope, ASyncOnAThreadWithoutALoopNamesBothThreads) {
  set_thread_number([] { return int{::gettid()}; });
  InterpretRuntime here;
  const RuntimeScope scope(here);
  const auto loop = fmt::format("the thread of their loop or Session, which is {},", ::gettid());
  std::jthread([&] {
    testing::expect_refusal({fmt::format("this is thread {}", ::gettid()), loop}, [](int& line) {
      line = __LINE__ + 1;
      sync();
    });
  }).join();
}

TEST_F(Trace, WarnsOnceOfALoopThatNeverSyncs) {
  Tensor x = f32({1}, {1});
  for (int i = 0; i < 20'100; ++i) x = x + 1;
  ASSERT_EQ(runtime_.warnings.size(), 1U);
  EXPECT_NE(runtime_.warnings[0].find(
                "20000 ops have been recorded without a sync(), the last at trace_test.cpp:"),
            std::string::npos)
      << runtime_.warnings[0];
  EXPECT_TRUE(runtime_.programs.empty());
}

TEST_F(Trace, WarnsOnceOfReadsThatEndNoStep) {
  const Tensor x = f32({1}, {1});
  for (int i = 0; i < 10'100; ++i) (x + 1).item();
  ASSERT_EQ(runtime_.warnings.size(), 1U);
  EXPECT_NE(runtime_.warnings[0].find("10000 programs have run in step 0, the last for the read at "
                                      "trace_test.cpp:"),
            std::string::npos)
      << runtime_.warnings[0];
  sync();
  for (int i = 0; i < 100; ++i) (x + 1).item();
  EXPECT_EQ(runtime_.warnings.size(), 1U);
}

TEST(TraceScope, EachThreadRecordsItsOwnProgram) {
  InterpretRuntime here;
  const RuntimeScope scope(here);
  const Tensor y = f32({1}, {1}) + 1;
  std::thread([] {
    InterpretRuntime there;
    const RuntimeScope their_scope(there);
    const Tensor z = f32({5}, {1}) + 1;
    sync();
    EXPECT_EQ(z.item(), 6);
    EXPECT_EQ(there.programs.back().num_ops(), 2U);
  }).join();
  EXPECT_EQ(here.programs.size(), 0U);
  EXPECT_EQ(y.item(), 2);
}

}  // namespace
}  // namespace weft::trace_test
