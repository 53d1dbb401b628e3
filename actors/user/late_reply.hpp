#pragma once
/// LateReply: answers a call after its endpoint has returned, for Reply.

#include <atomic>
#include <memory>
#include <string>

#include <weft/actor/reply.hpp>

#include "actors/table/actor_protocol.hpp"
#include "actors/user/actor_host.hpp"

namespace weft {

/// send() and fail() do nothing if the message needs no answer, or if the process has left its
/// system.
class LateReply final : public detail::PendingReply {
 public:
  /// `endpoint` is the endpoint's name, such as "policy[0].act".
  LateReply(std::weak_ptr<detail::ActorHost> process, const Asked& asked, std::string endpoint)
      : process_(std::move(process)), asked_(asked), endpoint_(std::move(endpoint)) {}

  void send(const MessageWriter& value) override;
  void fail(const std::string& why) override;
  bool is_awaited() const override;
  void send_error(const Error& error);

 private:
  std::shared_ptr<detail::ActorHost> process_that_answers();

  std::weak_ptr<detail::ActorHost> process_;
  Asked asked_;
  std::string endpoint_;
  std::atomic<bool> is_answered_{false};
};

}  // namespace weft
