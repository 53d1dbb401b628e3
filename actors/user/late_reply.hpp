#pragma once
/// LateReply: the answer of a call that its endpoint has taken over as a Reply.

#include <atomic>
#include <memory>
#include <string>

#include <weft/actor/reply.hpp>

#include "actors/table/actor_protocol.hpp"
#include "actors/user/actor_host.hpp"

namespace weft {

/// Sends nothing if the message was told, or if the process has left its system.
class LateReply final : public detail::PendingReply {
 public:
  /// `endpoint` is a name such as "policy[0].act".
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
