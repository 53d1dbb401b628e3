/// An application with a CAF of its own, whose actors call weft's actors and watch a job. It prints
/// what they get.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>

#include <weft/actor.hpp>
#include <weft/caf.hpp>
#include <weft/weft.hpp>

struct Question {
  int left = 0;
  int right = 0;
};

class Adder {
 public:
  explicit Adder(weft::ActorContext& ctx) : ctx_(ctx) {}
  int sum(const Question& question) const { return question.left + question.right; }
  void note(int number) { noted_ += number; }
  int noted() const { return noted_; }
  int refuse() { throw std::runtime_error("not today"); }
  void die() { ::kill(::getpid(), SIGKILL); }
  void wait_for_stop() {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, ctx_.stop(), [] { return false; });
  }
  using endpoints = weft::Endpoints<&Adder::sum, &Adder::note, &Adder::noted, &Adder::refuse,
                                    &Adder::die, &Adder::wait_for_stop>;

 private:
  weft::ActorContext& ctx_;
  int noted_ = 0;
};

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Question)
CAF_BEGIN_TYPE_ID_BLOCK(caf_app, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(caf_app, (Question))
CAF_ADD_TYPE_ID(caf_app, (weft::CallOf<&Adder::sum>))
CAF_ADD_TYPE_ID(caf_app, (weft::CallOf<&Adder::note>))
CAF_ADD_TYPE_ID(caf_app, (weft::CallOf<&Adder::noted>))
CAF_ADD_TYPE_ID(caf_app, (weft::CallOf<&Adder::refuse>))
CAF_ADD_TYPE_ID(caf_app, (weft::CallOf<&Adder::die>))
CAF_ADD_TYPE_ID(caf_app, (weft::CallOf<&Adder::wait_for_stop>))
CAF_END_TYPE_ID_BLOCK(caf_app)

namespace {

weft::ActorType<Adder> adder{"caf_app.adder"};

/// Saves each fourth step, and loses worker 1 once, at step 5.
weft::Loop loop{
    "caf_app.loop", [](weft::TrainContext& ctx, const weft::Config& config) {
      weft::Parameter sum = weft::make_parameter("sum", std::vector<float>{0}, {1});
      const auto marker = config.at("marker").get<std::string>();
      weft::CheckpointManager manager;
      while (ctx.step() < 10) {
        sum.assign(sum + 2.0);
        weft::sync();
        manager.save(std::vector<weft::Parameter>{sum});
        if (ctx.world_rank() == 1 && ctx.step() == 5 && !std::filesystem::exists(marker)) {
          std::ofstream{marker};
          ::kill(::getpid(), SIGKILL);
        }
      }
      ctx.report({{"sum", sum.to_vector()[0]}});
    }};

#if CAF_MAJOR_VERSION < 1
void register_types() {}
template <typename... Content>
auto request(caf::scoped_actor& self, const weft::CafActor<Adder>& to, Content... content) {
  return self->request(to, std::chrono::seconds(60), content...);
}
#else
void register_types() {
  caf::core::init_global_meta_objects();
  caf::init_global_meta_objects<caf::id_block::caf_app>();
  caf::init_global_meta_objects<caf::id_block::weft_job_events>();
}
template <typename... Content>
auto request(caf::scoped_actor& self, const weft::CafActor<Adder>& to, Content... content) {
  return self->mail(content...).request(to, std::chrono::seconds(60));
}
#endif

void print_number(int number) { std::printf("number %d\n", number); }
void print_nothing() { std::puts("nothing"); }
void print_error(const caf::error& error) {
  const std::optional<weft::Error> cause = weft::from_caf(error);
  std::printf("error %s %s%s\n", cause ? std::string(to_string(cause->code())).c_str() : "of CAF",
              cause ? cause->what() : "",
              error == caf::sec::request_timeout         ? " (request_timeout)"
              : error == caf::sec::request_receiver_down ? " (request_receiver_down)"
                                                         : "");
}

void call_actors(caf::actor_system& own) {
  weft::ActorSystem system{{.name = "caf_app"}};
  const auto adders = system.spawn(
      adder,
      {.count = 2, .place = weft::processes(2), .supervision = {.then = weft::ActorGivesUp::stop}});
  const auto first = weft::to_caf(own, adders[0]);
  const auto impatient = weft::to_caf(own, adders[1], {.timeout_s = 0.05});
  caf::scoped_actor self{own};
  request(self, first, weft::call<&Adder::sum>, Question{2, 3}).receive(print_number, print_error);
  request(self, first, weft::call<&Adder::note>, 4).receive(print_nothing, print_error);
  request(self, first, weft::call<&Adder::noted>).receive(print_number, print_error);
  request(self, first, weft::call<&Adder::refuse>).receive(print_number, print_error);
  request(self, impatient, weft::call<&Adder::wait_for_stop>).receive(print_nothing, print_error);
  request(self, first, weft::call<&Adder::die>).receive(print_nothing, print_error);
}

caf::behavior watcher(caf::event_based_actor* self) {
  return {
      [](const weft::JobStarted& event) {
        std::printf("started %d workers\n", event.job.num_workers);
      },
      [](const weft::JobReported& event) {
        std::printf("reported %g\n", event.metrics.at("sum").get<double>());
      },
      [](const weft::JobStep& event) { std::printf("step %d\n", static_cast<int>(event.step)); },
      [](const weft::JobLost& event) { std::printf("lost worker %d\n", event.failure.worker); },
      [](const weft::JobRecovered&) { std::puts("recovered"); },
      [](const weft::JobSaved& event) {
        std::printf("saved step %d\n", static_cast<int>(event.step));
      },
      [](const weft::JobHung&) { std::puts("hung"); },
      [](const weft::JobValidated&) { std::puts("validated"); },
      [self](const weft::JobEnded& event) {
        std::printf("ended %s\n", event.result.ok() ? "well" : event.result.error->message.c_str());
        self->quit();
      },
  };
}

void watch_job(caf::actor_system& own) {
  const std::string storage = std::getenv("WEFT_TEST_STORAGE");
  const std::string marker = storage + "/lost-" + std::to_string(::getpid());
  weft::Trainer{loop,
                {.loop_config = {{"marker", marker}},
                 .scaling = {.num_workers = 2},
                 .run = {.name = "caf_app",
                         .storage_path = storage,
                         .failure = {.max_failures = 1},
                         .checkpoint = {.save_interval = 4},
                         .callbacks = {weft::job_events_to(own.spawn(watcher))}}}}
      .fit();
  own.await_all_actors_done();
}

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  register_types();
  caf::actor_system_config config;
  caf::actor_system own{config};
  call_actors(own);
  watch_job(own);
}
