#pragma once
/// LoopExperience: a worker's part of one call of experience().

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor/experience.hpp>

#include "actors/data/job_loaders.hpp"
#include "actors/runtime/worker_runtime.hpp"
#include "transport/published/row_memory.hpp"

namespace weft {

struct LoopExperienceOptions {
  std::string job_id{};
  int worker = 0;
  int num_workers = 1;
  std::string name{};
  std::vector<Field> fields{};
  ExperienceOptions options{};
};

/// Worker 0 has a thread that orders the rows and frees those that aren't needed any more.
class LoopExperience {
 public:
  /// All workers must make their LoopExperience at the same line. Throws invalid_argument,
  /// no_space, io, or program_divergence.
  LoopExperience(WorkerRuntime& runtime, const JobLoaders& loaders, LoopExperienceOptions options,
                 const std::source_location& where);
  /// Ends the reads that still wait for rows.
  ~LoopExperience();
  LoopExperience(const LoopExperience&) = delete;
  LoopExperience& operator=(const LoopExperience&) = delete;

  const std::string& name() const { return options_.name; }
  const DatasetPtr& dataset() const { return dataset_; }
  /// Called when a step has ended.
  void step_ended();

 private:
  /// The rows that the first `step` steps have used.
  struct Used {
    std::uint64_t step = 0;
    std::uint64_t rows = 0;
  };

  RowMemory make_memory(const std::source_location& where) const;
  void order_rows();
  std::uint64_t releasable();

  WorkerRuntime& runtime_;
  const JobLoaders& loaders_;
  const LoopExperienceOptions options_;
  const bool keeps_state_;  ///< a loop may continue from a step that all chips have committed
  const std::shared_ptr<RowMemory> memory_;
  const std::shared_ptr<std::atomic<bool>> is_closed_;
  const DatasetPtr dataset_;
  std::mutex mutex_;
  std::deque<Used> used_;  // guarded by mutex_; in ascending order
  std::atomic<bool> must_stop_{false};
  std::jthread thread_;  // only in worker 0
};

}  // namespace weft
