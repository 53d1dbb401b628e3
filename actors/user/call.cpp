#include <weft/actor/call.hpp>

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include <weft/actor/actor_context.hpp>
#include <weft/actor/loan.hpp>
#include <weft/tensor/error.hpp>

#include "actors/user/actor_process.hpp"
#include "actors/user/registry.hpp"
#include "actors/user/tensor_blocks.hpp"

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
  return actor.process == nullptr ? "" : actor.process->actors().name(actor.row);
}

std::size_t least_busy(const std::vector<ActorHandle>& actors) {
  static thread_local std::size_t last = 0;  // so that idle actors are taken in turn
  std::size_t best = ++last % std::max<std::size_t>(actors.size(), 1);
  if (!actors.empty()) actors.front().process->replies().look();  // for open_calls()
  for (std::size_t step = 0; step < actors.size(); ++step) {
    const std::size_t i = (last + step) % actors.size();
    if (actors[i].process->open_calls(actors[i].row) <
        actors[best].process->open_calls(actors[best].row)) {
      best = i;
    }
  }
  return best;
}

std::vector<ActorHandle> find_actors(const std::shared_ptr<ActorProcess>& process,
                                     std::string_view mesh, std::string_view type) {
  const ActorTable& table = process->actors();
  const auto found = table.find(mesh);
  if (!found) {
    std::vector<std::string> names;
    for (std::uint32_t m = 0; m < table.mesh_count(); ++m) {
      if (table.mesh(m).is_ended.load() == 0) names.emplace_back(table.mesh(m).name);
    }
    fail(Errc::not_found, "there is no mesh of actors \"{}\"; the system has: {}", mesh,
         names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  const MeshTableRow& row = table.mesh(*found);
  if (std::string_view(row.type) != type) {
    fail(Errc::invalid_argument, "mesh \"{}\" has actors of type \"{}\", and not \"{}\"", mesh,
         row.type, type);
  }
  std::vector<ActorHandle> actors;
  for (std::uint32_t i = 0; i < row.count; ++i) actors.push_back({process, row.first_row + i});
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
  ActorProcess* process = in.process();
  if (process == nullptr || key != process->system_key()) {
    fail(Errc::invalid_argument,
         "a message has a reference to an actor of another system; actors can only be sent within "
         "their system");
  }
  const ActorTable& table = process->actors();
  if (row >= table.row_count()) {
    fail(Errc::corrupt, "a message refers to actor {}; there are {}", row, table.row_count());
  }
  const MeshTableRow& mesh = table.mesh(table.row(row).mesh);
  if (find_actor_class(mesh.type).parts().make != maker) {
    fail(Errc::corrupt, "a message refers to {}, which is of type \"{}\", as an actor of another",
         table.name(row), mesh.type);
  }
  return {process->shared_from_this(), row};
}

LoanedTensor loan(const std::shared_ptr<ActorProcess>& process, const TensorType& type) {
  return loan_tensor(process->node(), type);
}

}  // namespace weft::detail
