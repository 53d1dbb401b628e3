#pragma once
/// LoopPublisher: a worker's part of one Publisher.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <thread>
#include <vector>

#include <weft/nn/parameter.hpp>

#include "actors/data/job_checkpoints.hpp"
#include "actors/runtime/held_buffers.hpp"
#include "actors/runtime/worker_runtime.hpp"
#include "transport/published/published_memory.hpp"
#include "transport/published/version_writer.hpp"

namespace weft {

struct LoopPublisherOptions {
  std::string job_id{};
  int worker = 0;
  int num_workers = 1;
  std::string name{};
  std::vector<Parameter> tensors{};
};

/// Notes on the loop's thread which values to publish. Another thread copies them when the run that
/// computes them has ended.
class LoopPublisher {
 public:
  /// All workers must make their LoopPublisher at the same line. Throws invalid_argument, no_space,
  /// io, or program_divergence.
  LoopPublisher(WorkerRuntime& runtime, LoopPublisherOptions options,
                const std::source_location& where);
  /// Drops the versions that aren't copied yet.
  ~LoopPublisher();
  LoopPublisher(const LoopPublisher&) = delete;
  LoopPublisher& operator=(const LoopPublisher&) = delete;

  const std::string& name() const { return options_.name; }
  const std::source_location& where() const { return where_; }  ///< where it was made
  /// Returns a line with the number of publish() calls.
  std::string count_text() const;
  /// See Publisher. Waits while kWaitingMax versions aren't copied yet.
  void publish(const std::source_location& where);
  /// Called when a step has ended.
  void step_ended();
  /// Waits until all versions have been copied. Throws the error of a copy.
  void finish();

 private:
  /// The limit on versions that aren't copied yet: those of the runs in progress, and one more.
  static constexpr std::size_t kWaitingMax = 3;

  struct Copy {
    std::uint64_t publication = 0;
    std::uint64_t version = 0;
    std::uint64_t run = 0;  ///< the last run that writes these values
    std::vector<OwnShard> shards{};
    std::shared_ptr<HeldBuffers> held{};
  };

  PublishedMemory make_memory(const std::source_location& where) const;
  bool is_pending(const std::source_location& where) const;
  void add_copy(const std::source_location& where);
  void wait_for_copies(std::size_t most);
  void run();
  void carry_out(Copy& copy);
  bool await_decision(const Copy& copy);
  void copy_to(std::byte* version, Copy& copy) const;
  bool must_leave() const;

  WorkerRuntime& runtime_;
  const LoopPublisherOptions options_;
  const std::source_location where_;
  PublishedMemory memory_;
  VersionWriter writer_;
  std::uint64_t publications_ = 0;  // the number of the last publication
  bool is_wanted_ = false;          // whether to publish at the end of the step
  std::source_location wanted_at_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> copies_;   // guarded by mutex_; the first is being carried out
  std::exception_ptr error_;  // guarded by mutex_
  std::atomic<bool> must_stop_{false};
  std::jthread thread_;
};

}  // namespace weft
