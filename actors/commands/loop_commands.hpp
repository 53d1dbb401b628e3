#pragma once
/// LoopCommands: the commands that a worker's loop has read or may read. CommandDesk is the
/// trainer's half. It does no I/O, and Permits guards it. Invariants:
/// 1. Commands are read in the order of their numbers, each once in a generation.
/// 2. A held loop begins no step until it is let go. So no loop has begun the step that the desk
///    chooses for a command.
/// 3. If another loop has read a command in some step, this loop doesn't begin the next step unless
///    it has read that command too.

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
  /// Called when a generation begins at `step`. `known` are all commands of the job, in order.
  void start(std::uint64_t step, std::vector<StoredCommand> known);
  /// Sets which commands are known to the state with which the loop begins: all up to the last
  /// mark. Each mark also has the step in which its command was read.
  void begin_with(std::span<const CommandMark> read);
  /// Holds the loop. Returns the first step that the loop doesn't begin until let_go() is called.
  std::uint64_t hold();
  /// Lets the loop continue. Adds these commands, or changes their steps if the loop knows them but
  /// hasn't read them.
  void let_go(std::vector<StoredCommand> commands);
  /// Called when another loop has read a command. Returns an error's text if this loop has left the
  /// step of that read without reading the command.
  std::optional<std::string> read_elsewhere(const ReadElsewhere& read);

  /// Returns whether the loop may begin this step.
  bool may_begin(std::uint64_t step) const { return !is_held_ || step <= step_; }
  /// Called when the loop has begun this step. Returns an error's text as read_elsewhere() does.
  std::optional<std::string> begun(std::uint64_t step);

  /// Returns whether read() would return any command.
  bool has_due() const;
  /// Returns the commands that are due in this step or earlier, and marks them as read.
  std::vector<StoredCommand> read();
  /// Returns the commands that the loop's state knew when the loop began.
  std::span<const StoredCommand> earlier() const { return std::span(known_).first(num_earlier_); }
  /// Returns all known commands. Those that the loop has read come first.
  const std::vector<StoredCommand>& known() const { return known_; }
  /// Returns the last commands that the loop has read, including all reads that may be unknown to
  /// the desk.
  std::vector<CommandMark> marks() const;

 private:
  std::optional<std::string> missed() const;

  std::vector<StoredCommand> known_;
  std::size_t num_read_ = 0;
  std::size_t num_earlier_ = 0;
  std::uint64_t step_ = 0;  ///< the last step that the loop has begun
  bool is_held_ = false;
  std::vector<ReadElsewhere> elsewhere_;  ///< commands that other loops have read, but not this one
};

}  // namespace weft
