#pragma once
/// The actor systems in which the conformance tests run: real ones, and simulated ones.

#include <gtest/gtest.h>

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor_test.hpp>
#include <weft/weft.hpp>

#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

inline constexpr std::int64_t kWeights = 100;  ///< elements of the tensor that the jobs publish
inline constexpr int kRowCapacity = 8;         ///< jobs have memory for at least this many rows
inline const std::vector<Field> kNumbers{{"number", {DType::i32, {}}}};

/// Orders to the loop of a real system's job, which runs in this process, and the rows that the
/// loop has taken.
struct LoopOrders {
  std::atomic<std::uint64_t> versions{0};  ///< the newest version to publish
  std::atomic<std::size_t> rows{0};        ///< the number of rows to take
  std::atomic<bool> must_end{false};
  std::mutex mutex{};
  std::vector<int> taken{};  // guarded by mutex
};
LoopOrders& orders();
/// Starts a job that publishes "policy", or takes the rows of "steps", as orders() says.
Job start_ordered_job(const std::string& storage, bool takes_rows);

/// An ActorSystem whose meshes are in kProcesses processes, or in this process if that is 0.
template <int kProcesses>
struct Real {
  static constexpr ActorPlace kPlace{.processes = kProcesses};
  static constexpr std::uint64_t kSeed = 7;

  ~Real() { orders().must_end = true; }

  template <typename T>
  ActorMesh<T> spawn(const ActorType<T>& type, const SpawnOptions& options = {}) {
    return system->spawn(type, options);
  }
  void until(const std::function<bool()>& is_over) {
    while (!is_over()) std::this_thread::yield();
  }
  /// Returns a function that kills the process of the actor.
  template <typename T>
  std::function<void()> killer(const ActorRef<T>& actor) {
    return [pid = actor.template call<&T::pid>().get()] { ::kill(pid, SIGKILL); };
  }

  /// Starts a job that takes rows, or else publishes version 0 of "policy" with elements 0.
  void start_job(bool takes_rows) {
    folder.emplace();
    its_job.emplace(start_ordered_job(folder->path(), takes_rows));
  }
  const Job* job() const { return &*its_job; }
  /// Publishes the next version, whose elements are its number.
  void publish() {
    const std::uint64_t version = ++orders().versions;
    (void)Parameters(its_job->info().id, "policy").at_least(version);
  }
  /// Returns the numbers of the next rows.
  std::vector<int> take(std::size_t count) {
    orders().rows += count;
    std::vector<int> taken;
    until([&] {
      const std::lock_guard lock(orders().mutex);
      if (orders().taken.size() >= count) taken.swap(orders().taken);
      return taken.size() == count;
    });
    return taken;
  }
  void end_job() {
    orders().must_end = true;
    its_job->wait();
  }

  std::unique_ptr<ActorSystem> system = std::make_unique<ActorSystem>(SystemOptions{.seed = kSeed});
  std::optional<TemporaryFolder> folder;
  std::optional<Job> its_job;
};

/// An ActorTest with the functions of Real. The checks must hold for every seed.
template <int kProcesses, std::uint64_t kItsSeed>
struct Simulated {
  static constexpr ActorPlace kPlace{.processes = kProcesses};
  static constexpr std::uint64_t kSeed = kItsSeed;

  template <typename T>
  ActorMesh<T> spawn(const ActorType<T>& type, const SpawnOptions& options = {}) {
    return system->spawn(type, options);
  }
  void until(const std::function<bool()>& is_over) {
    for (int i = 0; !is_over(); ++i) {
      ASSERT_LT(i, 100'000) << system->history();
      if (!system->step()) system->advance(0.01);
    }
  }
  template <typename T>
  std::function<void()> killer(const ActorRef<T>& actor) {
    return [this, actor] { system->kill(actor); };
  }

  void start_job(bool takes_rows) {
    if (takes_rows) system->job().begin_experience("steps", kNumbers, kRowCapacity);
    publish_version(0);
  }
  const Job* job() const { return system->job().handle(); }
  void publish() { publish_version(++version); }
  std::vector<int> take(std::size_t count) {
    std::vector<int> taken;
    until([&] {
      const auto more = static_cast<std::int64_t>(count - taken.size());
      for (const TestRow& row : system->job().take_rows("steps", more)) {
        taken.push_back(row.fields.at("number").get<std::int32_t>()[0]);
      }
      return taken.size() == count;
    });
    return taken;
  }
  void end_job() { system->job().end(); }

  void publish_version(std::uint64_t number) {
    const std::vector<float> elements(kWeights, static_cast<float>(number));
    const ConstElementSpan span(elements);
    ASSERT_TRUE(
        system->job().publish("policy", number, {{"weight", HostTensor(span, {kWeights})}}));
  }

  std::unique_ptr<ActorTest> system = std::make_unique<ActorTest>(ActorTestOptions{.seed = kSeed});
  std::uint64_t version = 0;
};

struct SystemNames {
  template <typename S>
  static std::string GetName(int) {
    constexpr bool kIsReal = std::is_same_v<S, Real<S::kPlace.processes>>;
    return kIsReal ? fmt::format("Real{}", S::kPlace.processes)
                   : fmt::format("Simulated{}Seed{}", S::kPlace.processes, S::kSeed);
  }
};

}  // namespace weft::testing
