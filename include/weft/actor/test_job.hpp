#pragma once
/// TestJob: the job of an ActorTest. The test does what the job's loop would do.
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

/// A row that an actor has written.
struct TestRow {
  std::uint64_t version = 0;                   ///< that the actor gave to ExperienceWriter::loan()
  std::map<std::string, HostTensor> fields{};  ///< by name; copies
};

/// Actors of a mesh that lives with the job use ActorContext::parameters() and experience() as in a
/// program. What this class does is seen by them at once. Copies are the same job. Only the thread
/// of the test and functions of its actors may use it.
class TestJob {
 public:
  using Tensors = std::vector<std::pair<std::string, HostTensor>>;

  explicit TestJob(std::shared_ptr<ActorSimulation> simulation)
      : simulation_(std::move(simulation)) {}

  /// For SpawnOptions::lives_with of this test. The Job itself is empty.
  const Job* handle() const;
  /// Publishes a version, as Publisher does. Returns false, and publishes nothing, if views hold
  /// all eight places but that of the newest version. Throws invalid_argument for a version that
  /// isn't later than the newest one, for names or types that differ from those of the first
  /// version, and after end().
  bool publish(std::string_view name, std::uint64_t version, const Tensors& tensors);
  /// Lets actors write rows under a name, as experience() does; before that, they wait. There is
  /// memory for `capacity` rows. Throws invalid_argument.
  void begin_experience(std::string_view name, const std::vector<Field>& fields,
                        std::int64_t capacity);
  /// Returns the next rows, at most so many, in the order in which they have arrived. Their memory
  /// is free again, so that writers that wait continue. Throws not_found.
  std::vector<TestRow> take_rows(std::string_view name, std::int64_t at_most);
  /// Ends the job, and the meshes that live with it.
  void end();
  /// Returns whether end() was called, or a mesh that lives with the job has given up.
  bool has_ended() const;

 private:
  std::shared_ptr<ActorSimulation> simulation_;
};

}  // namespace weft
