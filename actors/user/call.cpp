#include <weft/actor/call.hpp>

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include <weft/actor/actor_context.hpp>
#include <weft/actor/loan.hpp>
#include <weft/message/containers.hpp>
#include <weft/tensor/error.hpp>

#include "actors/user/actor_host.hpp"
#include "actors/user/registry.hpp"

namespace weft::detail {

namespace {

void require_actor(const ActorHandle& actor) {
  if (actor.process == nullptr) {
    fail(Errc::invalid_argument,
         "this ActorRef refers to no actor; get one from spawn(), find() or a message");
  }
}

}  // namespace

std::shared_ptr<PendingCall> begin_call(const ActorHandle& actor, EndpointId endpoint,
                                        MessageWriter arguments, const CallOptions& options) {
  require_actor(actor);
  return actor.process->begin(actor.row, endpoint, std::move(arguments), options);
}

void begin_tell(const ActorHandle& actor, EndpointId endpoint, const MessageWriter& arguments,
                const CallOptions& options) {
  require_actor(actor);
  actor.process->tell(actor.row, endpoint, arguments, options);
}

std::string name_of(const ActorHandle& actor) {
  return actor.process == nullptr ? "" : actor.process->name(actor.row);
}

std::size_t least_busy(const std::vector<ActorHandle>& actors) {
  return actors.empty() ? 0 : actors.front().process->least_busy(actors);
}

std::vector<ActorHandle> find_actors(const std::shared_ptr<ActorHost>& process,
                                     std::string_view mesh, std::string_view type) {
  const std::vector<MeshOfActors> meshes = process->meshes();
  const auto found = std::ranges::find(meshes, mesh, &MeshOfActors::name);
  if (found == meshes.end()) {
    std::vector<std::string> names;
    for (const MeshOfActors& each : meshes) names.push_back(each.name);
    fail(Errc::not_found, "there is no mesh of actors \"{}\"; the system has: {}", mesh,
         names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  if (found->type != type) {
    fail(Errc::invalid_argument, "mesh \"{}\" has actors of type \"{}\", and not \"{}\"", mesh,
         found->type, type);
  }
  std::vector<ActorHandle> actors;
  for (std::uint32_t i = 0; i < found->count; ++i) {
    actors.push_back({process, found->first_row + i});
  }
  return actors;
}

void put_actor(MessageWriter& out, const ActorHandle& actor) {
  const bool is_none = actor.process == nullptr;
  MessageCodec<std::uint64_t>::put(out, is_none ? 0 : actor.process->system_key());
  MessageCodec<std::uint32_t>::put(out, is_none ? 0 : actor.row);
}

ActorHandle get_actor(MessageReader& in, ActorMaker maker) {
  const auto key = MessageCodec<std::uint64_t>::get(in);
  const auto row = MessageCodec<std::uint32_t>::get(in);
  if (key == 0) return {};
  ActorHost* process = in.process();
  if (process == nullptr || key != process->system_key()) {
    fail(Errc::invalid_argument,
         "a message has a reference to an actor of another system; actors can only be sent within "
         "their system");
  }
  std::string type;
  try {
    type = process->mesh_of(row).type;
  } catch (const Error& error) {
    if (error.code() == Errc::corrupt) throw;
    return {process->shared_from_this(), row};  // the actor has ended, so calls to it end with an
                                                // error
  }
  if (find_actor_class(type).parts().make != maker) {
    fail(Errc::corrupt, "a message refers to {}, which is of type \"{}\", as an actor of another",
         process->name(row), type);
  }
  return {process->shared_from_this(), row};
}

LoanedTensor loan(const std::shared_ptr<ActorHost>& process, const TensorType& type) {
  return process->loan(type);
}

}  // namespace weft::detail
