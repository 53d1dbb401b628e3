/// Tests data that actors exchange without calls: parameters, rows and pipes. Also tests callbacks
/// of event loops. Like conformance_test.cpp, runs in ActorSystem and in ActorTest.

#include <gtest/gtest.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/systems.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::data_conformance_test {
namespace {

using testing::expect_error;
using testing::kRowCapacity;
using testing::kWeights;
using testing::Real;
using testing::Simulated;
using testing::SystemNames;

struct Parcel {
  int number = 0;
  HostTensor content{};
};

/// An actor that reads versions, writes rows, and writes and reads pipes.
class Courier {
 public:
  explicit Courier(ActorContext& ctx) : ctx_(ctx) {
    if (!ctx.config().value("has_job", false)) return;
    policy_.emplace(ctx.parameters("policy"));
    steps_.emplace(ctx.experience("steps"));
  }
  int pid() const { return ::getpid(); }
  std::uint32_t incarnation() const { return ctx_.incarnation(); }

  /// Returns the version and the elements of a view.
  static std::vector<float> contents(const ParameterView& view) {
    std::vector<float> all{static_cast<float>(view.version())};
    std::ranges::copy(view.get<float>("weight", {kWeights}), std::back_inserter(all));
    return all;
  }
  std::vector<float> read() { return contents(policy_->newest()); }
  void hold() { held_ = policy_->newest(); }
  std::vector<float> held() const { return contents(held_); }
  std::uint64_t wait_for(std::uint64_t version) { return policy_->at_least(version).version(); }

  /// Writes chunks of `rows` rows with increasing numbers.
  void write(int first, int chunks, int rows) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      Rows loaned = steps_->loan(rows, 0);
      for (int i = 0; i < rows; ++i) loaned.get<std::int32_t>("number", i)[0] = first++;
      loaned.publish();
    }
  }
  /// Allocates memory for rows, and doesn't return it.
  void loan(int rows) { rows_.emplace(steps_->loan(rows, 0)); }

  void send(PipeWriter<int> out, int count) const {
    for (int i = 0; i < count; ++i) out.write(i);
    out.close();
  }
  std::vector<int> receive(PipeReader<int> in) const {
    std::vector<int> all;
    for (const int each : in) all.push_back(each);
    return all;
  }
  void send_parcels(PipeWriter<Parcel> out, int count) const {
    for (int i = 0; i < count; ++i) {
      LoanedTensor content = out.loan({DType::f32, {50}});
      std::ranges::fill(content.get<float>(), static_cast<float>(i));
      out.write({.number = i, .content = std::move(content).finish()});
    }
    out.close();
  }
  /// Returns the sum of the elements that were read.
  double receive_parcels(PipeReader<Parcel> in) const {
    double sum = 0;
    for (const Parcel& parcel : in) {
      for (const float element : parcel.content.get<float>()) sum += element;
    }
    return sum;
  }
  /// Writes a value, and keeps its end of the pipe open.
  void keep_writer(PipeWriter<int> out) {
    out.write(1);
    writer_ = std::move(out);
  }
  void keep_reader(PipeReader<int> in) {
    (void)in.read();
    reader_ = std::move(in);
  }
  void drop_ends() {
    writer_ = {};
    reader_ = {};
  }
  /// Reads the stream to its end. Returns the error with which it ends, or "end".
  std::string read_to_the_end(PipeReader<int> in) const {
    try {
      for (const int each : in) (void)each;
    } catch (const Error& error) {
      return std::string(to_string(error.code()));
    }
    return "end";
  }
  std::string write_to_the_end(PipeWriter<int> out) const {
    try {
      for (;;) out.write(1);
    } catch (const Error& error) {
      return std::string(to_string(error.code()));
    }
  }
  using endpoints =
      Endpoints<&Courier::pid, &Courier::incarnation, &Courier::read, &Courier::hold,
                &Courier::held, &Courier::wait_for, &Courier::write, &Courier::loan, &Courier::send,
                &Courier::receive, &Courier::send_parcels, &Courier::receive_parcels,
                &Courier::keep_writer, &Courier::keep_reader, &Courier::drop_ends,
                &Courier::read_to_the_end, &Courier::write_to_the_end>;

 private:
  ActorContext& ctx_;
  std::optional<Parameters> policy_;
  std::optional<ExperienceWriter> steps_;
  ParameterView held_;
  std::optional<Rows> rows_;
  PipeWriter<int> writer_;
  PipeReader<int> reader_;
};
const ActorType<Courier> courier{"test.courier"};

template <typename S>
class ActorData : public ::testing::Test {
 protected:
  SpawnOptions options(int count, bool own_thread = true) {
    return {.name = "c",
            .count = count,
            .place = {.processes = std::min(S::kPlace.processes, count)},
            .own_thread = own_thread};
  }
  ActorMesh<Courier> spawn(int count) { return s_.spawn(courier, options(count)); }
  /// Spawns couriers that live with a job, and are made again at once, as often as needed.
  ActorMesh<Courier> spawn_with_job(int count, bool takes_rows) {
    s_.start_job(takes_rows);
    SpawnOptions its = options(count);
    its.lives_with = s_.job();
    its.supervision = {.max_restarts = -1, .backoff_s = 0};
    its.config = {{"has_job", true}};
    return s_.spawn(courier, its);
  }
  static std::vector<float> contents_of(float version) {
    return std::vector<float>(kWeights + 1, version);
  }

  S s_;
};
using Systems = ::testing::Types<Real<0>, Real<2>, Simulated<0, 1>, Simulated<2, 1>,
                                 Simulated<2, 2>, Simulated<2, 3>, Simulated<2, 4>>;
TYPED_TEST_SUITE(ActorData, Systems, SystemNames);

template <typename S>
class ActorDataDeaths : public ActorData<S> {};
using SystemsOfProcesses =
    ::testing::Types<Real<2>, Simulated<2, 1>, Simulated<2, 2>, Simulated<2, 3>, Simulated<2, 4>>;
TYPED_TEST_SUITE(ActorDataDeaths, SystemsOfProcesses, SystemNames);

// --- Parameters ---

TYPED_TEST(ActorData, ParametersAreThoseOfTheNewestVersion) {
  const auto couriers = this->spawn_with_job(2, false);
  for (int version = 0; version < 20; ++version) {
    const std::vector expected(2, this->contents_of(static_cast<float>(version)));
    EXPECT_EQ(couriers.template call<&Courier::read>().get(), expected);
    this->s_.publish();
  }
}

TYPED_TEST(ActorData, AVersionThatIsHeldDoesNotChange) {
  const auto couriers = this->spawn_with_job(2, false);
  this->s_.publish();
  couriers[0].template call<&Courier::hold>().get();
  for (int i = 0; i < 20; ++i) this->s_.publish();
  EXPECT_EQ(couriers[0].template call<&Courier::held>().get(), this->contents_of(1));
  EXPECT_EQ(couriers[1].template call<&Courier::read>().get(), this->contents_of(21));
}

TYPED_TEST(ActorData, ActorsWaitForAVersion) {
  const auto couriers = this->spawn_with_job(2, false);
  auto waits = couriers.template call<&Courier::wait_for>(2);
  this->s_.publish();
  this->s_.publish();
  EXPECT_EQ(waits.get(), (std::vector<std::uint64_t>{2, 2}));
}

TYPED_TEST(ActorData, AStopEndsAWaitForAVersion) {
  const auto couriers = this->spawn_with_job(2, false);
  auto waits = couriers[0].template call<&Courier::wait_for>(1000);
  couriers[1].template call<&Courier::read>().get();
  this->s_.system->stop("c");
  EXPECT_FALSE(waits.outcome().ok());
}

TYPED_TEST(ActorData, AMeshEndsWithItsJob) {
  const auto couriers = this->spawn_with_job(2, false);
  this->s_.end_job();
  this->s_.until([&] { return !couriers[1].template call<&Courier::pid>().outcome().ok(); });
  expect_error(Errc::cancelled,
               {"c[1] has ended: mesh \"c\" was stopped because its job ", "has ended"},
               [&] { couriers[1].template call<&Courier::pid>().get(); });
}

TYPED_TEST(ActorData, ParametersNeedAJob) {
  SpawnOptions options = this->options(1);
  options.config = {{"has_job", true}};
  expect_error(Errc::actor_failed,
               {"parameters(\"policy\"): mesh \"c\" was spawned without a job", "lives_with"},
               [&] { this->s_.spawn(courier, options); });
}

// --- Rows ---

TYPED_TEST(ActorData, RowsArriveInTheOrderOfTheirWriter) {
  const auto couriers = this->spawn_with_job(2, true);
  auto first = couriers[0].template call<&Courier::write>(0, 20, 2);
  auto second = couriers[1].template call<&Courier::write>(1000, 10, 4);
  const std::vector<int> rows = this->s_.take(80);  // ten times as many as fit into the memory
  first.get();
  second.get();
  std::vector<int> expected_first, expected_second, rows_first, rows_second;
  for (int i = 0; i < 40; ++i) {
    expected_first.push_back(i);
    expected_second.push_back(1000 + i);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    (rows[i] < 1000 ? rows_first : rows_second).push_back(rows[i]);
    const int in_chunk = rows[i] < 1000 ? rows[i] % 2 : rows[i] % 4;
    if (in_chunk > 0) {
      EXPECT_EQ(rows[i], rows[i - 1] + 1) << "a chunk isn't whole";
    }
  }
  EXPECT_EQ(rows_first, expected_first);
  EXPECT_EQ(rows_second, expected_second);
}

TYPED_TEST(ActorDataDeaths, LoseRowsAndFreeTheirMemory) {
  const auto couriers = this->spawn_with_job(2, true);
  const auto kill = this->s_.killer(couriers[0]);
  couriers[0].template call<&Courier::loan>(kRowCapacity).get();
  kill();
  this->s_.until([&] { return couriers[0].template call<&Courier::incarnation>().get() == 2; });
  auto writes = couriers[0].template call<&Courier::write>(0, 3, kRowCapacity);
  const std::vector<int> rows = this->s_.take(std::size_t{3} * kRowCapacity);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], static_cast<int>(i));
  writes.get();
}

TYPED_TEST(ActorData, AStopEndsAWaitForRoom) {
  const auto couriers = this->spawn_with_job(2, true);
  auto writes = couriers[0].template call<&Courier::write>(0, 1000, 2);
  couriers[1].template call<&Courier::pid>().get();
  this->s_.system->stop("c");
  EXPECT_FALSE(writes.outcome().ok());
}

// --- Pipes ---

TYPED_TEST(ActorData, APipePassesValuesInOrder) {
  const auto couriers = this->spawn(2);
  Pipe<int> pipe = this->s_.system->template pipe<int>({.credits = 2});
  couriers[0].template tell<&Courier::send>(pipe.writer, 100);
  auto received = couriers[1].template call<&Courier::receive>(pipe.reader);
  std::vector<int> expected(100);
  for (int i = 0; i < 100; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(received.get(), expected);
}

TYPED_TEST(ActorData, APipePassesTensorsWithoutACopy) {
  const auto couriers = this->spawn(2);
  Pipe<Parcel> pipe = this->s_.system->template pipe<Parcel>({.credits = 3});
  couriers[0].template tell<&Courier::send_parcels>(pipe.writer, 20);
  auto sum = couriers[1].template call<&Courier::receive_parcels>(pipe.reader);
  EXPECT_EQ(sum.get(), 50 * 190);
  EXPECT_EQ(this->s_.system->counts().copied_tensors, 0U);
}

TYPED_TEST(ActorData, TheProgramIsAnEndOfAPipeToo) {
  const auto couriers = this->spawn(1);
  Pipe<int> to = this->s_.system->template pipe<int>({.credits = 1});
  Pipe<int> from = this->s_.system->template pipe<int>({.credits = 1});
  couriers[0].template tell<&Courier::send>(from.writer, 10);
  int expected = 0;
  for (const int each : from.reader) EXPECT_EQ(each, expected++);
  EXPECT_EQ(expected, 10);
  auto received = couriers[0].template call<&Courier::receive>(to.reader);
  for (int i = 0; i < 10; ++i) to.writer.write(i);
  to.writer.close();
  EXPECT_EQ(received.get().size(), 10U);
}

TYPED_TEST(ActorData, APipeHasSoManyCredits) {
  const auto couriers = this->spawn(2);
  Pipe<int> pipe = this->s_.system->template pipe<int>({.credits = 3});
  int count = 0;
  while (pipe.writer.try_write(count)) ++count;
  EXPECT_EQ(count, 3);
  auto received = couriers[0].template call<&Courier::receive>(pipe.reader);
  for (; count < 10; ++count) pipe.writer.write(count);
  pipe.writer.close();
  EXPECT_EQ(received.get().size(), 10U);
}

TYPED_TEST(ActorData, AnEndLearnsThatTheOtherWasDropped) {
  const auto couriers = this->spawn(2);
  Pipe<int> written = this->s_.system->template pipe<int>({.credits = 2});
  couriers[0].template call<&Courier::keep_writer>(written.writer).get();
  auto reads = couriers[1].template call<&Courier::read_to_the_end>(written.reader);
  couriers[0].template tell<&Courier::drop_ends>();
  EXPECT_EQ(reads.get(), "peer_lost");

  Pipe<int> read = this->s_.system->template pipe<int>({.credits = 2});
  auto writes = couriers[1].template call<&Courier::write_to_the_end>(read.writer);
  couriers[0].template call<&Courier::keep_reader>(read.reader).get();
  couriers[0].template tell<&Courier::drop_ends>();
  EXPECT_EQ(writes.get(), "peer_lost");
}

TYPED_TEST(ActorDataDeaths, AreSeenAtTheOtherEndOfAPipe) {
  SpawnOptions options = this->options(2);
  options.supervision = {.max_restarts = -1};
  const auto couriers = this->s_.spawn(courier, options);
  const auto kill = this->s_.killer(couriers[0]);
  Pipe<int> pipe = this->s_.system->template pipe<int>({.credits = 2});
  couriers[0].template call<&Courier::keep_writer>(pipe.writer).get();
  auto reads = couriers[1].template call<&Courier::read_to_the_end>(pipe.reader);
  kill();
  EXPECT_EQ(reads.get(), "peer_lost");
}

TYPED_TEST(ActorData, AnActorThatSharesItsThreadMayNotWaitForAPipe) {
  const auto couriers = this->s_.spawn(courier, this->options(1, false));
  Pipe<int> pipe = this->s_.system->template pipe<int>();
  expect_error(Errc::endpoint_failed, {"c[0] may not wait", ".own_thread = true"},
               [&] { couriers[0].template call<&Courier::receive>(pipe.reader).get(); });
}

TYPED_TEST(ActorData, AnEndThatIsNeverUsedIsMissed) {
  Pipe<int> pipe = this->s_.system->template pipe<int>({.join_timeout_s = 0.2});
  expect_error(Errc::timeout, {"its writer wasn't used within 0.2 s"},
               [&] { (void)pipe.reader.read(); });
}

// --- Event loops ---

TYPED_TEST(ActorData, CallbacksRunInTheEventLoopOfTheProgram) {
  const auto couriers = this->spawn(1);
  const auto is_ready = [fd = this->s_.system->fd()] {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, 0) == 1;
  };
  std::uint32_t answer = 0;
  couriers[0].template call<&Courier::incarnation>().then(
      [&](const Outcome<std::uint32_t>& outcome) { answer = outcome.value(); });
  this->s_.until(is_ready);
  EXPECT_EQ(answer, 0U);
  EXPECT_EQ(this->s_.system->run_ready(), 1);
  EXPECT_EQ(answer, 1U);
  EXPECT_FALSE(is_ready());
  EXPECT_EQ(this->s_.system->run_ready(), 0);
}

}  // namespace
}  // namespace weft::data_conformance_test
