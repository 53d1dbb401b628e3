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

void ActorHost::require_host_0(std::string_view what) const {
  const std::uint32_t host = place().host;
  if (host == 0) return;
  fail(Errc::unavailable,
       "{}: this process is on host {}, and the job's memory is on host 0: spawn the mesh there "
       "with .place = weft::processes(n, 0), or send it the tensors in messages",
       what, host);
}

void ActorHost::create_channel(ChannelOptions options) {
  const ProcessPlace own = place();
  if (own.host_count > 1) {
    fail(Errc::unavailable,
         "pipe(): the actor system is on {} hosts, and a pipe needs two processes of one host, "
         "because its values lie in shared memory; send the values by tell(), whose messages keep "
         "their order",
         own.host_count);
  }
  options.job = own.system;
  Channel::create(options);
}

std::shared_ptr<Channel> ActorHost::open_channel(const std::string& name) {
  return std::make_shared<Channel>(Channel::open(place().system, name));
}

void ActorHost::remove_channel(const std::string& name) noexcept {
  Segment::remove(Channel::segment_name(place().system, name));
}

}  // namespace weft::detail
