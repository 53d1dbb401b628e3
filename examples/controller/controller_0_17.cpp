/// An application with CAF actors of its own, in CAF 0.17: its controller asks an actor of
/// weft, which runs in another process, what to do in each step. libweft.so has its own CAF.
///
///   controller [STEPS [KILLS [STORAGE]]]
///
/// A job of this program learns the policy meanwhile; its run folder is in STORAGE. The controller
/// kills the policy's process KILLS times, and each time weft starts a new one.

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include <weft/caf.hpp>
#include <weft/job.hpp>

#include "examples/controller/cart_pole.hpp"

namespace {

using tick_a = caf::atom_constant<caf::atom("tick")>;
using std::chrono::seconds;
weft::ActorType<Policy> policy{"robot.policy"};

struct Run {
  CartPole cart{};
  int steps = 0;
  int kill_every = 0;  ///< the steps between two kills; 0: none
  int step = 0;
  int brakes = 0;
};

caf::behavior controller(caf::event_based_actor* self, const weft::CafActor<Policy>& brain,
                         const std::shared_ptr<Run>& run) {
  self->send(self, tick_a::value);
  const auto go_on = [=](const Action& action) {
    run->cart.move(action);
    if (++run->step < run->steps) {
      self->send(self, tick_a::value);
    } else {
      self->quit();
    }
  };
  const auto brake = [=](const caf::error& error) {  // timeout, peer_lost, ...
    fmt::print("step {}: {}\n", run->step, caf::to_string(error));
    ++run->brakes;
    go_on(Action{});
  };
  return {[=](tick_a) {
    if (run->kill_every > 0 && run->step % run->kill_every == run->kill_every / 2) {
      self->request(brain, seconds(10), weft::call<&Policy::process>)
          .then([](int pid) { ::kill(pid, SIGKILL); }, brake);
    }
    self->request(brain, seconds(10), weft::call<&Policy::act>, run->cart.state())
        .then(go_on, brake);
  }};
}

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  const auto run = std::make_shared<Run>();
  run->steps = argc > 1 ? std::atoi(argv[1]) : 500;
  const int kills = argc > 2 ? std::atoi(argv[2]) : 0;
  run->kill_every = kills > 0 ? run->steps / kills : 0;

  caf::actor_system_config config;
  caf::actor_system own{config};
  weft::ActorSystem system{{.name = "robot"}};
  const weft::Job job = start_learning(argc > 3 ? argv[3] : "");
  const weft::Parameters learned(job.info().id, "policy", {.timeout_s = 300});
  (void)learned.at_least(kLearnedSteps);  // with fewer steps of learning, the pole would fall
  const auto policies = system.spawn(policy, {.place = weft::processes(1),
                                              .own_thread = true,
                                              .lives_with = &job,
                                              .supervision = {.max_restarts = -1}});
  own.spawn(controller, weft::to_caf(own, policies[0]), run);
  own.await_all_actors_done();
  fmt::print("the job has made {} steps meanwhile\n",
             learned.version().value_or(0) - kLearnedSteps);
  const Observation& end = run->cart.state();
  fmt::print("{} after {} steps, {} brakes, at {:.4f} m and {:.4f} rad\n",
             run->cart.is_upright() ? "upright" : "fallen", run->step, run->brakes, end.position,
             end.angle);
  return run->cart.is_upright() ? 0 : 1;
}
