#pragma once
/// Runner: a thread that runs the actors of one port.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/actor/actor_context.hpp>
#include <weft/actor/actor_type.hpp>

#include "actors/table/actor_protocol.hpp"
#include "actors/table/actor_table.hpp"
#include "actors/table/function_trace.hpp"
#include "actors/user/tensor_blocks.hpp"
#include "transport/lanes/lane_node.hpp"

namespace weft {

namespace detail {
class ActorProcess;
}

/// Takes messages from its port and runs them, one after the other. While there are no messages,
/// calls the actors' work(). A failed actor's messages are kept until it is made again.
class Runner {
 public:
  /// `process` must outlive the Runner.
  Runner(detail::ActorProcess& process, std::uint32_t port);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Requests the stop of the actors that have ended according to the table. Any thread may call
  /// it.
  void request_stops();
  /// Requests the stop of all actors, ends the thread after the current function, and destroys the
  /// actors.
  void stop();

 private:
  struct Actor {
    const detail::ActorClass* type = nullptr;
    std::uint32_t row = 0;
    bool own_thread = false;
    std::stop_source stop{};
    std::unique_ptr<ActorContext> context{};
    std::shared_ptr<void> object{};  ///< null: the actor has failed, or isn't made yet
    std::deque<InMessage> kept{};    ///< messages for the next incarnation
  };

  void run();
  bool take_one();
  void handle(InMessage&& message);
  void handle_from_dead(InMessage message);
  void run_message(Actor& actor, InMessage&& message);
  void warn_of_delay(const Actor& actor, std::uint32_t endpoint, std::uint64_t ns);
  void run_kept(Actor& actor);
  bool work_once();
  void make(InMessage&& message);
  void end(const InMessage& message);
  void refuse(const InMessage& message);
  void fail_actor(Actor& actor, const std::string& why);
  void answer(const Asked& asked, const MessageWriter& value);
  void answer_error(const Asked& asked, const Error& error);
  std::string endpoint_name(const Actor& actor, std::uint32_t endpoint) const;

  detail::ActorProcess* process_;
  std::uint32_t port_;
  std::mutex mutex_;
  std::map<std::uint32_t, Actor> actors_;  // by row; other threads read it under mutex_
  std::uint32_t last_worker_ = 0;          ///< the row whose work() ran last
  FunctionTrace functions_;
  std::set<std::pair<const detail::ActorClass*, std::uint32_t>> warned_;
  std::atomic<bool> must_stop_{false};
  std::jthread thread_;
};

}  // namespace weft
