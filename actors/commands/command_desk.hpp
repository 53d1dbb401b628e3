#pragma once
/// CommandDesk: decides in which steps the loops of a job read its commands, and how posts are
/// answered. It is the trainer's half of the protocol; LoopCommands is the worker's half. It has no
/// clock, no I/O and no actor. Invariants:
/// 1. A command gets a step that no loop has begun, in this or an earlier generation, or the step
///    in which all loops wait for commands.
/// 2. The steps of commands don't decrease as the commands' numbers increase.
/// 3. Each post is answered once.
/// 4. While a generation gathers, posts wait; its loops begin with all commands.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft/actor/outcome.hpp>

#include "actors/commands/loop_commands.hpp"
#include "transport/format/stored_command.hpp"

namespace weft {

struct CommandPost {
  std::uint64_t post = 0;  ///< the poster's number
  std::string name{};
  std::string payload{};  ///< JSON
};
struct CommandAnswer {
  std::uint64_t post = 0;
  std::uint64_t number = 0;  ///< the command's number; 0: the command was refused
  Outcome<std::uint64_t> outcome;
};
/// Tells that a worker's loop has read commands in other steps than another loop.
struct UnevenReads {
  int worker = -1;
  std::uint64_t step = 0;
  std::string message{};
};

/// Tasks for the desk's owner, in this order.
struct DeskActions {
  std::vector<StoredCommand> scheduled{};  ///< these have just got their steps: write them down
  bool holds = false;                      ///< ask all loops to begin no further step
  std::optional<std::vector<StoredCommand>> let_go{};  ///< send these; held loops then continue
  std::vector<ReadElsewhere> read{};                   ///< tell the loops of the other workers
  std::vector<StoredCommand> all_read{};               ///< write down that all loops read these
  std::vector<CommandAnswer> answers{};
  std::vector<std::string> warnings{};
  std::optional<UnevenReads> uneven{};  ///< if set, the job fails
};

class CommandDesk {
 public:
  /// `known` are the commands of the checkpoint with which the job begins, in order.
  CommandDesk(int num_workers, std::vector<StoredCommand> known);

  /// Replaces the constructor's commands, because the job begins with another checkpoint. No loop
  /// may have begun yet.
  void begin_with(std::vector<StoredCommand> known);
  DeskActions post(CommandPost post);
  /// Called when loops begin at `step`. `begun` is the last step that a loop of an earlier
  /// generation began. Afterwards, commands() returns what the loops must know.
  DeskActions begin_generation(std::uint64_t generation, std::uint64_t step,
                               std::optional<std::uint64_t> begun);
  void unwind();
  /// Called when the worker's loop is held: it doesn't begin this step until it is let go.
  DeskActions held(int worker, std::uint64_t generation, std::uint64_t step);
  /// Called when the worker's loop has read commands. With `is_earlier`, the loop hasn't read them
  /// itself, but the state with which it began knows them.
  DeskActions read(int worker, std::uint64_t generation, std::span<const CommandMark> marks,
                   bool is_earlier);
  /// Called when the loop waits for commands in this step, after it has read those up to number
  /// `last`.
  DeskActions waits(int worker, std::uint64_t generation, std::uint64_t step, std::uint64_t last);
  DeskActions loop_ended(int worker, std::uint64_t generation);
  /// Called when a loop has reached this step. Warns of commands that no loop has read for many
  /// steps.
  DeskActions reached(std::uint64_t step);
  /// Refuses posts with this error from now on.
  DeskActions close(Error why);
  /// Called when the job has ended. Answers all posts. `why` is the job's failure. `checkpoint` is
  /// the path of its last checkpoint, which contains the commands `kept`; "": there is none.
  DeskActions end(const std::optional<Error>& why, const std::string& checkpoint = "",
                  std::span<const StoredCommand> kept = {});
  /// Returns whether some post isn't answered yet.
  bool is_open() const;

  std::vector<StoredCommand> commands() const;
  /// Called when a loop has reported a checkpoint of `step`, so that num_read_at() knows how many
  /// commands the loop had read. If the loop's generation is over, the commands that were read
  /// before that step count.
  void checkpoint_reported(int worker, std::uint64_t generation, std::uint64_t step,
                           const std::string& path);
  std::uint64_t num_read_at(const std::string& path) const;

 private:
  struct Entry {
    StoredCommand command{};
    std::uint64_t post = 0;
    std::set<int> readers{};
    bool is_scheduled = false;
    bool is_answered = false;
    bool is_warned_of = false;
  };
  struct Wait {
    std::uint64_t step = 0;
    std::uint64_t last = 0;
  };
  std::optional<Error> refusal(const CommandPost& post) const;
  std::optional<std::uint64_t> step_of_waits() const;
  bool takes_part(int worker, std::uint64_t generation) const;
  DeskActions schedule_or_hold();
  DeskActions let_go_at(std::uint64_t step);
  void end_round(DeskActions& actions);
  void refuse_unscheduled(const Error& why, DeskActions& actions);
  static void answer(Entry& entry, Outcome<std::uint64_t> outcome, DeskActions& actions);
  std::string unread_text(const Entry& entry) const;

  const int num_workers_;
  std::vector<Entry> entries_;  ///< in order of their numbers
  std::size_t bytes_ = 0;       ///< the bytes of all names and payloads
  std::uint64_t generation_ = 0;
  bool is_running_ = false;
  std::set<int> ended_;                                ///< workers whose loops have ended
  std::optional<std::map<int, std::uint64_t>> round_;  ///< answers to `holds`, by worker
  std::map<int, Wait> waits_;                          ///< by worker
  std::optional<Error> closed_;
  std::deque<std::pair<std::string, std::uint64_t>> reported_;  ///< path, number of commands read
};

}  // namespace weft
