#pragma once
/// CommandPosts: the posts of a job whose posters wait for an answer. Posts are checked here, and
/// sent to the trainer's actor.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include <weft/job/command.hpp>

#include "actors/commands/command_desk.hpp"

namespace weft {

/// Thread-safe.
class CommandPosts {
 public:
  using Answer = Outcome<std::uint64_t>;
  using Answered = std::function<void(const Answer&)>;

  /// Posts a command. `answered` is called once, on any thread; it must not block. Throws
  /// invalid_argument for a name or payload that Command doesn't allow.
  void post(const std::string& name, const Metrics& payload, Answered answered);
  PostedCommand post(const Command& command);

  /// From now on posts are sent by `send`, which must lead to an answered() for each.
  void open(std::function<void(const CommandPost&)> send);
  void answered(const CommandAnswer& answer);
  /// The job has ended: no post is sent any more, and the posts without an answer get an error.
  void close();

 private:
  std::mutex mutex_;
  std::function<void(const CommandPost&)> send_;  ///< empty before open() and after close()
  std::uint64_t last_ = 0;                        ///< number of the last post
  std::map<std::uint64_t, Answered> waiting_;     ///< by number of the post
};

}  // namespace weft
