/// The third program of docs/decisions/0099: actors of weft in an application with a CAF of its
/// own, which is 0.17 or 1.x.

#include <weft/caf.hpp>

#include "tests/package/actors/robot.hpp"

struct Policy {
  explicit Policy(weft::ActorContext& ctx) : parameters(ctx.parameters("policy")) {}
  Action act(const Observation& o) { return forward(parameters.newest(), o); }
  using endpoints = weft::Endpoints<&Policy::act>;
  weft::Parameters parameters;
};
static weft::ActorType<Policy> policy{"robot.policy"};
using std::chrono::milliseconds;
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Observation)  // these messages stay within the process
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Action)

#if CAF_MAJOR_VERSION < 1

using tick_a = caf::atom_constant<caf::atom("tick")>;

caf::behavior controller(caf::event_based_actor* self, const weft::CafActor<Policy>& brain) {
  self->send(self, tick_a::value);
  return {[=](tick_a) {
    if (is_at_rest()) return self->quit();
    self->request(brain, milliseconds(500), weft::call<&Policy::act>, read_joints())
        .then([](const Action& a) { drive(a); },
              [](const caf::error&) { brake(); });  // on timeout, peer_lost, ...
    self->delayed_send(self, milliseconds(20), tick_a::value);
  }};
}

#else

CAF_BEGIN_TYPE_ID_BLOCK(robot, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(robot, (Observation))
CAF_ADD_TYPE_ID(robot, (Action))
CAF_ADD_TYPE_ID(robot, (weft::CallOf<&Policy::act>))
CAF_ADD_ATOM(robot, tick_a)
CAF_END_TYPE_ID_BLOCK(robot)

caf::behavior controller(caf::event_based_actor* self, const weft::CafActor<Policy>& brain) {
  self->mail(tick_a_v).send(self);
  return {[=](tick_a) {
    if (is_at_rest()) return self->quit();
    self->mail(weft::call<&Policy::act>, read_joints())
        .request(brain, milliseconds(500))
        .then([](const Action& a) { drive(a); },
              [](const caf::error&) { brake(); });  // on timeout, peer_lost, ...
    self->mail(tick_a_v).delay(milliseconds(20)).send(self);
  }};
}

#endif

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
#if CAF_MAJOR_VERSION >= 1
  caf::core::init_global_meta_objects();
  caf::init_global_meta_objects<caf::id_block::robot>();
#endif
  caf::actor_system_config config;
  caf::actor_system own{config};  // as without weft
  weft::ActorSystem system{{.name = "robot"}};
  const weft::Job job = robot::start_learning();
  const auto policies =
      system.spawn(policy, {.own_thread = true, .lives_with = &job});  // runs in this process
  own.spawn(controller, weft::to_caf(own, policies[0]));
  own.await_all_actors_done();
}
