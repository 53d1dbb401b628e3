#pragma once
/// TestJob: the job of an ActorTest. The test plays the part of the job's loop.
///
///   weft::TestJob job = test.job();
///   job.begin_experience("steps", {{"reward", {weft::DType::f32, {}}}}, 64);
///   const auto players = test.spawn(player, {.own_thread = true, .lives_with = job.handle()});
///   job.publish("policy", 1, {{"gains", weft::HostTensor(std::vector<float>{1, 2}, {2})}});
///   test.run();
///   for (const weft::TestRow& row : job.take_rows("steps", 16)) check(row);

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/tensor/dlpack.hpp>

namespace weft {

class ActorSimulation;
class Job;

/// A row that an actor has published.
struct TestRow {
  std::uint64_t version = 0;                   ///< as given to ExperienceWriter::loan()
  std::map<std::string, HostTensor> fields{};  ///< copies of the row's fields, by name
};

/// Lets a test give parameters to actors, and take their rows. Actors of a mesh that lives with
/// this job use ActorContext::parameters() and experience() as in a program, and see at once what
/// the test does here. Copies are the same job. Only the thread of the test and functions of its
/// actors may use it.
class TestJob {
 public:
  using Tensors = std::vector<std::pair<std::string, HostTensor>>;

  explicit TestJob(std::shared_ptr<ActorSimulation> simulation)
      : simulation_(std::move(simulation)) {}

  /// Returns a Job for SpawnOptions::lives_with of this test; it has no other use.
  const Job* handle() const;
  /// Publishes a version, as Publisher does. If views keep seven versions besides the newest one,
  /// publishes nothing and returns false. Throws invalid_argument for a version that isn't later
  /// than the newest one, for names or types that differ from those of the first version, and after
  /// end().
  bool publish(std::string_view name, std::uint64_t version, const Tensors& tensors);
  /// Lets actors write rows under a name, as experience() does; until then, writers wait. There is
  /// memory for `capacity` rows. Throws invalid_argument.
  void begin_experience(std::string_view name, const std::vector<Field>& fields,
                        std::int64_t capacity);
  /// Returns the next rows, in the order of their arrival, but not more than `at_most`. Their
  /// memory becomes free, so writers that wait can continue. Throws not_found.
  std::vector<TestRow> take_rows(std::string_view name, std::int64_t at_most);
  /// Ends the job, and the meshes that live with it.
  void end();
  /// Returns whether the job has ended: by end(), or because a mesh that lives with it failed for
  /// good.
  bool has_ended() const;

 private:
  std::shared_ptr<ActorSimulation> simulation_;
};

}  // namespace weft
