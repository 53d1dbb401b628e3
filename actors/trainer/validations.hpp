#pragma once
/// Validations: runs the function of ValidationConfig on checkpoints.

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

/// Only one call of the function runs at a time, on the object's own thread. At most one checkpoint
/// waits for that call to end; a newer checkpoint replaces the one that waits. RUN/validation.json
/// always lists all validations. During a call, hard links in RUN/validation preserve the files of
/// its checkpoint.
class Validations {
 public:
  /// Does nothing if `config` has no function. `run_dir` must outlive the object.
  Validations(ValidationConfig config, std::string run_dir);
  /// Waits until the running call has ended.
  ~Validations();
  Validations(const Validations&) = delete;
  Validations& operator=(const Validations&) = delete;

  void add(const Checkpoint& checkpoint, std::uint64_t step);
  /// Skips the checkpoint that waits.
  void drop_waiting();
  /// Returns whether no call runs and no checkpoint waits.
  bool over() const;
  /// Returns a descriptor that is readable while pop() has a result.
  int fd() const { return ended_.fd(); }
  /// Returns the next validation that has ended or was skipped; nothing if there is no new one.
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
  std::vector<Validation> all_;         // guarded by mutex_, like the members below
  std::optional<std::size_t> waiting_;  // index in all_
  bool runs_ = false;
  std::stop_source stop_;
  std::jthread thread_;  // started with the first checkpoint
};

}  // namespace weft
