#pragma once
/// ActorTest: runs actors for a test, in an order that depends on a seed only.

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
  /// The environment variable WEFT_ACTOR_TEST_SEED replaces it.
  std::uint64_t seed = 1;
  int kills = 0;  ///< at most so many processes are killed; the seed decides when
  /// At most so many calls, answers and told messages are lost, as if they came too late. The call
  /// ends at its timeout.
  int drops = 0;
  int steps_between_faults = 20;  ///< on average, and at least 1
  int threads = 2;                ///< as SystemOptions::threads
  double call_timeout_s = 30;     ///< as SystemOptions::call_timeout_s, by the clock of the test
  double work_s = 0.01;           ///< seconds by which each call of work() moves the clock
  int max_steps = 1'000'000;      ///< after so many steps, functions throw the error timeout
};

/// An actor system without processes, shared memory and concurrency. The classes of actors,
/// references, futures and messages are those of ActorSystem. One function of an actor runs at a
/// time, from one wait to the next. The seed says which one is next, among all that could be. Equal
/// seeds give equal histories, if the actors use nothing else that changes, such as clocks,
/// addresses, or threads of their own.
///
///   weft::ActorTest::for_seeds(1, 1000, {.kills = 2}, [](weft::ActorTest& test) {
///     const auto counters = test.spawn(counter, {.count = 4, .place = weft::processes(2),
///                                                .supervision = {.max_restarts = -1}});
///     counters.tell<&Counter::add>(5);
///     test.run();
///     test.require(counters[0].call<&Counter::total>().get() <= 5, "added twice");
///   });
///
/// The clock is simulated: it stands still while messages are delivered, and moves to the next
/// instant at which something is due when the test waits in Future::get(), spawn(), stop() or
/// advance(). Only the thread of the test and the functions of its actors may use it. An actor may
/// wait in get(), but in nothing that weft doesn't know, such as a condition variable.
class ActorTest {
 public:
  explicit ActorTest(ActorTestOptions options = {});
  /// Ends the actors as a kill does. Writes the history to stderr if an exception ends the test.
  ~ActorTest();
  ActorTest(const ActorTest&) = delete;
  ActorTest& operator=(const ActorTest&) = delete;

  /// As ActorSystem::spawn(). A process of actors is a part of the test's process.
  /// SpawnOptions::lives_with must be null or job().handle(), and beside_loops() takes that job
  /// only: such actors run in the test's process.
  template <typename T>
  ActorMesh<T> spawn(const ActorType<T>& type, const SpawnOptions& options = {}) {
    std::vector<ActorRef<T>> actors;
    for (detail::ActorHandle& actor : spawn_class(type.entry(), options)) {
      actors.emplace_back(std::move(actor));
    }
    return ActorMesh<T>(std::move(actors));
  }
  /// Returns the job of the test, which publishes parameters and takes rows as the test says.
  TestJob job() const;
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) {
    return detail::make_pipe_of<T>(host(), options);
  }
  /// These functions and pipe() are those of ActorSystem. Before the first call of fd(), callbacks
  /// of then() run as steps.
  void stop(const std::string& mesh);
  LoanedTensor loan(const TensorType& type);
  int fd();
  int run_ready();
  ActorCounts counts() const;
  std::optional<Error> failure() const;

  /// Delivers one message, runs one callback, lets one actor continue, or calls one work(). Returns
  /// false if there was nothing to do at this instant.
  bool step();
  /// Delivers messages until there are none. The clock stands still, except for calls of work().
  void run();
  /// Moves the clock by 0 to 1e8 seconds, and does everything that becomes due. Throws
  /// invalid_argument for another number.
  void advance(double seconds);
  /// Returns the seconds since the test began.
  double now() const;
  /// Kills the process of the actor, as kill -9 does, unless it has died already. Its functions
  /// don't return, but destructors run. Throws invalid_argument for an actor in the test's process.
  template <typename T>
  void kill(const ActorRef<T>& actor) {
    kill_process_of(actor.handle());
  }
  /// Ends the faults that the seed gives, so that results can be looked at.
  void end_faults();

  /// Throws loop_failed with `what` and the place of the call, unless `holds`.
  void require(bool holds, std::string_view what,
               std::source_location where = std::source_location::current()) const;
  /// Returns what has happened, one line for each event: the seconds, and a text.
  std::string history() const;
  std::uint64_t seed() const;

  using Body = std::function<void(ActorTest&)>;
  /// Runs the body with `count` seeds, of which `first` is the first; with WEFT_ACTOR_TEST_SEED
  /// alone if that is set. If the body throws, runs that seed again to see that it fails in the
  /// same way, and throws loop_failed with the seed, what was thrown, and the history. Throws
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
  bool is_quiet_ = false;  ///< for_seeds() tells the history itself
};

}  // namespace weft
