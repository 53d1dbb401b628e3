#pragma once
/// Validations: the calls of ValidationConfig::function.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <weft/job/config.hpp>
#include <weft/job/result.hpp>

#include "actors/process/wake_queue.hpp"

namespace weft {

/// One call runs at a time, on a thread of its own, and at most one checkpoint waits for it: a
/// newer one takes its place. RUN/validation.json always has all of them. While a call runs, its
/// checkpoint stays in RUN/validation, by hard links to its files.
class Validations {
 public:
  /// Does nothing where `config` has no function. `run_dir` must outlive it.
  Validations(ValidationConfig config, std::string run_dir);
  /// Waits for the call that runs.
  ~Validations();
  Validations(const Validations&) = delete;
  Validations& operator=(const Validations&) = delete;

  void add(const Checkpoint& checkpoint, std::uint64_t step);
  /// The checkpoint that waits is skipped.
  void drop_waiting();
  /// No call runs, and no checkpoint waits.
  bool over() const;
  /// Readable while pop() has something.
  int fd() const { return ended_.fd(); }
  /// Each that has ended or was skipped, once.
  std::optional<Validation> pop() { return ended_.pop(); }
  std::vector<Validation> all() const;

 private:
  void work();
  void run(Validation& validation) const;
  void skip(std::size_t number);
  void end(std::size_t number);
  void write() const;

  const ValidationConfig config_;
  const std::string run_dir_;
  WakeQueue<Validation> ended_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Validation> all_;         // guarded by mutex_, as all below
  std::optional<std::size_t> waiting_;  // in all_
  bool runs_ = false;
  std::stop_source stop_;
  std::jthread thread_;  // begun with the first checkpoint
};

}  // namespace weft
