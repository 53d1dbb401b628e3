#pragma once
/// LoopCommands: the commands that a worker's loop has read or may read. CommandDesk is the
/// trainer's half. It is pure, and Permits protects it. Invariants:
/// 1. Commands are read in the order of their numbers, each once in a generation.
/// 2. A loop that is held begins no further step until the desk has answered. So no loop has begun
///    the step that the desk chooses for a command.
/// 3. If another loop has read a command in some step, this loop doesn't begin the next step
///    without having read it too.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/format/stored_command.hpp"

namespace weft {

/// A command that another worker's loop has read.
struct ReadElsewhere {
  int worker = -1;
  CommandMark mark{};
};

class LoopCommands {
 public:
  /// A generation begins at `step`. `known` are all commands of the job, in order.
  void start(std::uint64_t step, std::vector<StoredCommand> known);
  /// Says which commands the state knows with which the loop begins: those up to the last mark.
  /// Earlier marks say in which steps commands were read.
  void begin_with(std::span<const CommandMark> read);
  /// Returns the first step that the loop doesn't begin until let_go() is called.
  std::uint64_t hold();
  /// Adds commands, or changes the steps of commands that the loop hasn't read.
  void let_go(std::vector<StoredCommand> commands);
  /// Returns the text of an error if this loop has left the step of the mark without having read
  /// that command.
  std::optional<std::string> read_elsewhere(const ReadElsewhere& read);

  /// Returns whether the loop may begin this step. If so and it does, begun() must follow, which
  /// returns the text of the error above.
  bool may_begin(std::uint64_t step) const { return !is_held_ || step <= step_; }
  std::optional<std::string> begun(std::uint64_t step);

  /// Returns whether read() would return a command.
  bool has_due() const;
  /// Reads all commands whose step has come.
  std::vector<StoredCommand> read();
  /// Returns the commands that the loop's state knew when the loop began.
  std::span<const StoredCommand> earlier() const { return std::span(known_).first(num_earlier_); }
  /// Returns all known commands; the ones that the loop has read come first.
  const std::vector<StoredCommand>& known() const { return known_; }
  /// Returns the last commands that the loop has read, enough to tell the desk of all that it may
  /// not know of.
  std::vector<CommandMark> marks() const;

 private:
  std::optional<std::string> missed() const;

  std::vector<StoredCommand> known_;
  std::size_t num_read_ = 0;
  std::size_t num_earlier_ = 0;
  std::uint64_t step_ = 0;  ///< the last step begun
  bool is_held_ = false;
  std::vector<ReadElsewhere> elsewhere_;  ///< commands that other loops have read, but not this one
};

}  // namespace weft
