#pragma once
/// ActorTest: runs actors for a test, in an order that depends only on a seed.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/actor/actor_mesh.hpp>
#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_system.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/actor/loan.hpp>
#include <weft/actor/pipe.hpp>
#include <weft/actor/test_job.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

class ActorSimulation;

struct ActorTestOptions {
  /// The seed of the order and the faults. The environment variable WEFT_ACTOR_TEST_SEED replaces
  /// it.
  std::uint64_t seed = 1;
  int kills = 0;  ///< the maximum number of kills of processes; the seed decides when
  /// The maximum number of calls, answers and told messages that are lost, as if they came too
  /// late. A call whose message is lost ends at its timeout.
  int drops = 0;
  int steps_between_faults = 20;  ///< the average number of steps between two faults, at least 1
  int threads = 2;                ///< like SystemOptions::threads
  double call_timeout_s = 30;     ///< like SystemOptions::call_timeout_s, by the clock of the test
  double work_s = 0.01;           ///< seconds by which each call of work() moves the clock
  int max_steps = 1'000'000;      ///< after this number of steps, functions throw timeout
};

/// An actor system without processes, shared memory or concurrency. The classes of actors,
/// references, futures and messages are those of ActorSystem. Only one actor runs at a time, until
/// its function waits or returns; the seed then chooses the next among all actors that could run.
/// Equal seeds give equal histories, unless actors depend on something else that varies, such as
/// clocks, addresses, or threads of their own.
///
///   weft::ActorTest::for_seeds(1, 1000, {.kills = 2}, [](weft::ActorTest& test) {
///     const auto counters = test.spawn(counter, {.count = 4, .place = weft::processes(2),
///                                                .supervision = {.max_restarts = -1}});
///     counters.tell<&Counter::add>(5);
///     test.run();
///     test.require(counters[0].call<&Counter::total>().get() <= 5, "added twice");
///   });
///
/// The clock is simulated: it stands still while messages are delivered. When the test waits in
/// Future::get(), spawn(), stop() or advance(), the clock moves to the next instant at which
/// something is due. Only the thread of the test and the functions of its actors may use it. An
/// actor may wait in get(), but not in a function that isn't weft's, such as a wait for a condition
/// variable.
class ActorTest {
 public:
  explicit ActorTest(ActorTestOptions options = {});
  /// Ends the actors as kill() does. If the test ends by an exception, writes the history to
  /// stderr.
  ~ActorTest();
  ActorTest(const ActorTest&) = delete;
  ActorTest& operator=(const ActorTest&) = delete;

  /// Works like ActorSystem::spawn(), but all "processes" of actors are parts of this process.
  /// SpawnOptions::lives_with must be null or job().handle(), and beside_loops() takes only that
  /// job: such actors run in the test's process.
  template <typename T>
  ActorMesh<T> spawn(const ActorType<T>& type, const SpawnOptions& options = {}) {
    std::vector<ActorRef<T>> actors;
    for (detail::ActorHandle& actor : spawn_class(type.entry(), options)) {
      actors.emplace_back(std::move(actor));
    }
    return ActorMesh<T>(std::move(actors));
  }
  /// Returns the job of the test. The test itself publishes its parameters and takes its rows.
  TestJob job() const;
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) {
    return detail::make_pipe_of<T>(host(), options);
  }
  /// These functions and pipe() work like those of ActorSystem. Before the first call of fd(),
  /// callbacks of then() run as steps.
  void stop(const std::string& mesh);
  LoanedTensor loan(const TensorType& type);
  int fd();
  int run_ready();
  ActorCounts counts() const;
  std::optional<Error> failure() const;

  /// Delivers one message, runs one callback, lets one actor continue, or calls one work(). Returns
  /// false if there is nothing to do at this instant.
  bool step();
  /// Delivers messages until none are left. The clock stands still, except for calls of work().
  void run();
  /// Moves the clock by 0 to 1e8 seconds, and does everything that becomes due. Throws
  /// invalid_argument for other numbers.
  void advance(double seconds);
  /// Returns the seconds since the test began.
  double now() const;
  /// Kills the actor's process as kill -9 does, unless it has died already. The functions that its
  /// actors run don't return, but destructors run. Throws invalid_argument for an actor in the
  /// test's own process.
  template <typename T>
  void kill(const ActorRef<T>& actor) {
    kill_process_of(actor.handle());
  }
  /// Stops the random faults, for example before the test checks results.
  void end_faults();

  /// Throws loop_failed, with `what` and the place of the call, unless `holds` is true.
  void require(bool holds, std::string_view what,
               std::source_location where = std::source_location::current()) const;
  /// Returns what has happened, one line for each event: the time in seconds, and a text.
  std::string history() const;
  std::uint64_t seed() const;

  using Body = std::function<void(ActorTest&)>;
  /// Runs the body with the seeds `first` to `first + count - 1`, or only with WEFT_ACTOR_TEST_SEED
  /// if it is set. If the body throws, runs that seed again to see that it fails in the same way,
  /// and throws loop_failed with the seed, the exception's text and the history. Throws
  /// invalid_argument unless `count` is at least 1.
  static void for_seeds(std::uint64_t first, int count, const ActorTestOptions& options,
                        const Body& body);
  static void for_seeds(std::uint64_t first, int count, const Body& body) {
    for_seeds(first, count, {}, body);
  }

 private:
  std::shared_ptr<detail::ActorHost> host() const;
  std::vector<detail::ActorHandle> spawn_class(const detail::ActorClass& type,
                                               const SpawnOptions& options);
  void kill_process_of(const detail::ActorHandle& actor);

  std::shared_ptr<ActorSimulation> simulation_;
  int exceptions_ = 0;
  bool is_quiet_ = false;  ///< no history on stderr, since for_seeds() puts it in its error
};

}  // namespace weft
