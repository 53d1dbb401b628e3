#include <weft/actor/actor_test.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <fmt/format.h>

#include "actors/keeper/checks.hpp"
#include "actors/simulate/actor_simulation.hpp"
#include "actors/simulate/simulated_process.hpp"

namespace weft {
namespace {

constexpr const char* kSeedVariable = "WEFT_ACTOR_TEST_SEED";
/// The limit on lines of the history that an error shows. It shows the last ones.
constexpr std::size_t kLinesOfErrorMax = 200;

/// Returns the seed from the environment variable, if it is set.
std::optional<std::uint64_t> given_seed() {
  const char* text = std::getenv(kSeedVariable);
  if (text == nullptr || *text == '\0') return {};
  const std::string_view digits(text);
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), seed);
  if (error != std::errc{} || end != digits.end()) {
    fail(Errc::invalid_argument, "the environment variable {} is \"{}\": expected a whole number",
         kSeedVariable, text);
  }
  return seed;
}

std::string joined(const std::vector<std::string>& lines, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < lines.size(); ++i) text += lines[i] + "\n";
  return text;
}

/// The error and the history of a run that failed.
struct FailedRun {
  std::string what;
  std::vector<std::string> history;
};

/// Describes where two runs with the same seed differ; returns "" if they don't.
std::string difference(const FailedRun& first, const std::optional<FailedRun>& second) {
  constexpr const char* kWhy =
      "so something in the test depends on more than the seed, such as a clock, an address or a "
      "thread";
  if (!second) return fmt::format("\nA second run of this seed didn't fail, {}.", kWhy);
  const auto [a, b] = std::ranges::mismatch(first.history, second->history);
  if (a == first.history.end() && b == second->history.end()) return "";
  return fmt::format("\nA second run of this seed differs from event {} on (\"{}\"), {}.",
                     a - first.history.begin() + 1, b == second->history.end() ? "the end" : *b,
                     kWhy);
}

}  // namespace

ActorTest::ActorTest(ActorTestOptions options) : exceptions_(std::uncaught_exceptions()) {
  options.seed = given_seed().value_or(options.seed);
  simulation_ = std::make_shared<ActorSimulation>(options);
  simulation_->begin();
}

ActorTest::~ActorTest() {
  if (std::uncaught_exceptions() > exceptions_ && !is_quiet_) {
    fmt::print(stderr, "ActorTest: an exception ends a test of seed {}; {}={} replays it.\n{}",
               seed(), kSeedVariable, seed(), history());
  }
  simulation_->end();
}

std::vector<detail::ActorHandle> ActorTest::spawn_class(const detail::ActorClass& type,
                                                        const SpawnOptions& options) {
  simulation_->require_turn();
  SimulatedKeeper& keeper = simulation_->keeper();
  const std::uint32_t number = keeper.add(type, options);
  const SimulatedMesh& mesh = keeper.meshes()[number];
  simulation_->wait([&] { return mesh.is_ready || mesh.is_ending; }, SimulatedTime::max());
  if (!mesh.is_ready) throw mesh.cause.value_or(stopped_error(mesh.name));
  std::vector<detail::ActorHandle> actors;
  const auto process = simulation_->test_process().shared_from_this();
  for (int i = 0; i < mesh.options.count; ++i) {
    actors.push_back({process, mesh.first_row + static_cast<std::uint32_t>(i)});
  }
  return actors;
}

void ActorTest::stop(const std::string& mesh) {
  simulation_->require_turn();
  SimulatedKeeper& keeper = simulation_->keeper();
  const std::uint32_t number = keeper.find(mesh);
  keeper.end_mesh(number, std::nullopt);
  simulation_->wait([&] { return keeper.has_ended(number); }, SimulatedTime::max());
}

TestJob ActorTest::job() const { return TestJob(simulation_); }

std::shared_ptr<detail::ActorHost> ActorTest::host() const {
  return simulation_->test_process().shared_from_this();
}

int ActorTest::fd() { return simulation_->test_process().ready_fd(); }

int ActorTest::run_ready() {
  simulation_->require_turn();
  return simulation_->test_process().run_ready();
}

LoanedTensor ActorTest::loan(const TensorType& type) {
  return simulation_->test_process().loan(type);
}

ActorCounts ActorTest::counts() const { return simulation_->counts(); }

std::optional<Error> ActorTest::failure() const { return simulation_->keeper().failure(); }

bool ActorTest::step() { return simulation_->step(true); }

void ActorTest::run() {
  while (simulation_->step(false)) {
  }
}

void ActorTest::advance(double seconds) {
  if (!(seconds >= 0) || seconds > 1e8) {
    fail(Errc::invalid_argument, "advance({}): expected 0 to 1e8 seconds", seconds);
  }
  simulation_->wait([] { return false; }, simulation_->now() + nanoseconds(seconds));
  run();
}

double ActorTest::now() const { return simulation_->seconds(); }

void ActorTest::kill_process_of(const detail::ActorHandle& actor) {
  simulation_->require_turn();
  SimulatedKeeper& keeper = simulation_->keeper();
  if (actor.process == nullptr || actor.process->system_key() != simulation_->key()) {
    fail(Errc::invalid_argument, "kill: expected an actor of this ActorTest");
  }
  const SimulatedRow& row = keeper.row(actor.row);
  if (row.child < 0) {
    fail(Errc::invalid_argument,
         "kill: {} is in the test's process: spawn it with .place = weft::processes(n)",
         keeper.name(actor.row));
  }
  simulation_->kill(row.position.process, "was killed");
}

void ActorTest::end_faults() { simulation_->end_faults(); }

void ActorTest::require(bool holds, std::string_view what, std::source_location where) const {
  if (holds) return;
  const std::string_view file = where.file_name();
  fail(Errc::loop_failed, "{} ({}:{})", what, file.substr(file.rfind('/') + 1), where.line());
}

std::string ActorTest::history() const { return joined(simulation_->history(), 0); }

std::uint64_t ActorTest::seed() const { return simulation_->options().seed; }

void ActorTest::for_seeds(std::uint64_t first, int count, const ActorTestOptions& options,
                          const Body& body) {
  if (count < 1) fail(Errc::invalid_argument, "for_seeds: count = {}: expected 1 or more", count);
  const auto run = [&](std::uint64_t seed) -> std::optional<FailedRun> {
    ActorTestOptions its = options;
    its.seed = seed;
    ActorTest test(its);
    test.is_quiet_ = true;
    try {
      body(test);
      return {};
    } catch (...) {
      return FailedRun{current_exception_text(), test.simulation_->history()};
    }
  };
  const std::optional<std::uint64_t> given = given_seed();
  for (std::uint64_t i = 0; i < (given ? 1 : static_cast<std::uint64_t>(count)); ++i) {
    const std::uint64_t seed = given.value_or(first + i);
    const std::optional<FailedRun> failed = run(seed);
    if (!failed) continue;
    const std::size_t lines = failed->history.size();
    const std::size_t begin = lines - std::min(lines, kLinesOfErrorMax);
    fail(Errc::loop_failed, "seed {}: {}\n{}={} replays it.{} The last {} of {} events:\n{}", seed,
         failed->what, kSeedVariable, seed, difference(*failed, run(seed)), lines - begin, lines,
         joined(failed->history, begin));
  }
}

}  // namespace weft
