#pragma once
/// LoopPublishers: the Publishers and the experience of a worker's loop during one generation.

#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "actors/publish/loop_experience.hpp"
#include "actors/publish/loop_publisher.hpp"

namespace weft {

/// Only the loop's thread may use it.
class LoopPublishers : private LoopObserver {
 public:
  /// `runtime` and `loaders` must outlive this object.
  LoopPublishers(WorkerRuntime& runtime, const JobLoaders& loaders, std::string job_id, int worker,
                 int num_workers);
  ~LoopPublishers() override;
  LoopPublishers(const LoopPublishers&) = delete;
  LoopPublishers& operator=(const LoopPublishers&) = delete;

  /// See Publisher's constructor.
  std::weak_ptr<LoopPublisher> make(std::string name, std::vector<Parameter> tensors,
                                    const std::source_location& where);
  /// See experience().
  DatasetPtr experience(std::string name, std::vector<Field> fields,
                        const ExperienceOptions& options, const std::source_location& where);
  /// Called at the end of the loop. Waits until all versions have been copied. Throws the error of
  /// a copy, or program_divergence if the workers haven't published equally often.
  void finish();

 private:
  void step_ended() override;
  void require_mesh(const char* what, const std::string& name,
                    const std::source_location& where) const;

  WorkerRuntime& runtime_;
  const JobLoaders& loaders_;
  const std::string job_id_;
  const int worker_;
  const int num_workers_;
  std::vector<std::shared_ptr<LoopPublisher>> publishers_;
  std::vector<std::unique_ptr<LoopExperience>> experience_;
};

}  // namespace weft
