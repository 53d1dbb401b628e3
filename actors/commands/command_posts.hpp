#pragma once
/// CommandPosts: checks the commands that are posted to a job, sends them to the trainer's actor,
/// and passes the answers to the posters.

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

  /// Posts a command. `answered` is called once, on any thread, and must not block. Throws
  /// invalid_argument for a name or payload that Command doesn't allow.
  void post(const std::string& name, const Metrics& payload, Answered answered);
  PostedCommand post(const Command& command);

  /// Lets posts be sent by `send` from now on. Each of them must later lead to a call of
  /// answered().
  void open(std::function<void(const CommandPost&)> send);
  void answered(const CommandAnswer& answer);
  /// Called when the job has ended. Gives the posts without an answer an error, and sends no posts
  /// from now on.
  void close();

 private:
  std::mutex mutex_;
  std::function<void(const CommandPost&)> send_;  ///< empty before open() and after close()
  std::uint64_t last_ = 0;                        ///< number of the last post
  std::map<std::uint64_t, Answered> waiting_;     ///< by number of the post
};

}  // namespace weft
