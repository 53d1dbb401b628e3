#include "actors/user/actor_host.hpp"

#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/table/actor_protocol.hpp"
#include "actors/user/waits.hpp"

namespace weft::detail {

void ActorHost::check_wait(std::string_view what) const {
  const ThreadRole& role = ThreadRole::current();
  if (!role.may_block) {
    fail(Errc::invalid_argument,
         "{}: {} may not wait, because other actors need its thread; spawn the mesh with "
         ".own_thread = true",
         what, role.actor ? role.host->name(*role.actor) : "a callback of then()");
  }
  if (must_end({})) fail(Errc::cancelled, "{}: {}", what, system_ended_error().what());
  if (role.actor && role.host->must_end(role.actor)) {
    fail(Errc::cancelled, "{}: {} is to stop", what, role.host->name(*role.actor));
  }
}

void ActorHost::create_channel(ChannelOptions options) {
  options.job = place().system;
  Channel::create(options);
}

std::shared_ptr<Channel> ActorHost::open_channel(const std::string& name) {
  return std::make_shared<Channel>(Channel::open(place().system, name));
}

void ActorHost::remove_channel(const std::string& name) noexcept {
  Segment::remove(Channel::segment_name(place().system, name));
}

}  // namespace weft::detail
