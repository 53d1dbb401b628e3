#pragma once
/// Command: tells the loops of a running job to do something, at the same step in every worker.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <weft/actor/outcome.hpp>
#include <weft/job/config.hpp>

namespace weft {

/// The maximum length of a command's name.
inline constexpr std::size_t kCommandNameMax = 64;
/// The maximum size of a command's payload, as JSON text in bytes.
inline constexpr std::size_t kCommandPayloadMax = std::size_t{64} << 10;
/// The maximum number of a job's commands that not all loops have read yet.
inline constexpr int kOpenCommandsMax = 64;
/// The maximum size of all commands of a job, in bytes of names and payloads. A job keeps its
/// commands, because a loop that begins again sees them again.
inline constexpr std::size_t kJobCommandsMax = std::size_t{4} << 20;

struct Command {
  std::string name{};  ///< 1 to kCommandNameMax letters, digits, '_', '-' and '.': "learning_rate"
  Metrics payload{};   ///< any JSON value; NaN and infinities become null
  /// The step in which all loops read the command. The loop's context sets it; Job::post() ignores
  /// it.
  std::uint64_t step = 0;
};

/// The answer to Job::post(). Copies share the answer. The loops read the command even if all
/// copies are destroyed. Thread-safe.
class PostedCommand {
 public:
  /// Waits until all loops have read the command, and returns the step in which they did. If they
  /// never will, throws overloaded (too many open commands, or too many bytes of commands),
  /// cancelled (the job was told to end), or unavailable (the job or its loops have ended; the text
  /// says which loops have read the command).
  std::uint64_t get() const { return outcome().value(); }
  /// Waits as get() does, but returns the error.
  Outcome<std::uint64_t> outcome() const;
  /// Waits until the answer is known, at most for `time`. Returns whether it is known.
  bool wait_for(std::chrono::nanoseconds time) const;

 private:
  friend class CommandPosts;
  struct State;
  explicit PostedCommand(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace weft
