/// An actor system for the tests of `weft inspect`: inspected_app NAME CASE. Prints its id, and
/// then lasts until it is killed.
///
///   endless  a function that never returns, for which others wait
///   calls    calls, tells and Replies that have ended, and a call that never will
///   pipes    two actors that write to each other's full pipes
///   again    an actor whose process has died is there again
///   keeps    an actor that keeps a tensor of a message
///   learns   a job, "NAME-job", whose loop has done a step of four rows, has got three rows of the
///            next step, and waits for the fourth; two actors write no rows any more
///   follows  the same with one actor, which waits for a version that the loop never makes
///   fails    a mesh that has failed, beside one that lives

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace {

class Keeps {
 public:
  int quick() const { return 1; }
  [[gnu::noinline]] int endless() const {  // so that stacks have its name
    for (;;) ::pause();
  }
  void keep(const weft::HostTensor& tensor) { kept_.push_back(tensor); }
  void fail() { throw std::runtime_error("told to fail"); }
  void later(weft::Reply<int> reply) { reply.send(2); }
  void die() { ::kill(::getpid(), SIGKILL); }
  using endpoints = weft::Endpoints<&Keeps::quick, &Keeps::endless, &Keeps::keep, &Keeps::fail,
                                    &Keeps::later, &Keeps::die>;

 private:
  std::vector<weft::HostTensor> kept_;
};
const weft::ActorType<Keeps> keeps{"inspected.keeps"};

class Writes {
 public:
  void start(weft::PipeWriter<int> out, weft::PipeReader<int> in) {
    in.try_read();  // so that the pipe knows its reader
    for (int i = 0;; ++i) out.write(i);
  }
  using endpoints = weft::Endpoints<&Writes::start>;
};
const weft::ActorType<Writes> writes{"inspected.writes"};

class Asks {
 public:
  explicit Asks(weft::ActorContext& ctx) : ctx_(ctx) {}
  int ask(int index) const { return ctx_.find(keeps, "keeps")[index].call<&Keeps::quick>().get(); }
  using endpoints = weft::Endpoints<&Asks::ask>;

 private:
  weft::ActorContext& ctx_;
};
const weft::ActorType<Asks> asks{"inspected.asks"};

void learn(weft::TrainContext& ctx) {
  weft::Parameter sum = weft::make_parameter("sum", 0.0F, {});
  weft::Publisher policy(ctx, "policy", {sum});
  weft::DeviceLoader batches(
      weft::experience(ctx, "steps", {{"value", {weft::DType::f32, {}}}}, {.capacity = 64}),
      {.batch_size = 4, .loader_prefetch_size = 1, .device_prefetch_size = 0});
  for (const weft::Batch& batch : batches) {
    sum.assign(sum + weft::sum(batch["value"]));
    policy.publish();
  }
}
const weft::Loop learner{"inspected.learn", learn};

class Rollout {
 public:
  explicit Rollout(weft::ActorContext& ctx)
      : policy_(ctx.parameters("policy")), steps_(ctx.experience("steps")) {}
  /// Writes rows, and keeps the newest version of the parameters from the first one on.
  void write(int rows) {
    steps_.loan(rows, 0).publish();
    if (!view_) view_ = policy_.newest();
  }
  void wait_for_version(int version) { policy_.at_least(static_cast<std::uint64_t>(version)); }
  using endpoints = weft::Endpoints<&Rollout::write, &Rollout::wait_for_version>;

 private:
  weft::Parameters policy_;
  weft::ExperienceWriter steps_;
  std::optional<weft::ParameterView> view_;
};
const weft::ActorType<Rollout> rollout{"inspected.rollout"};

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  if (argc != 3) return 1;
  const std::string_view what = argv[2];
  weft::ActorSystem system{{.name = argv[1]}};
  const auto kept = system.spawn(keeps, {.name = "keeps",
                                         .count = 3,
                                         .place = weft::processes(2),
                                         .own_thread = true,
                                         .supervision = {.max_restarts = 5}});
  const auto asking = system.spawn(asks, {.name = "asks", .own_thread = true});
  std::vector<weft::Future<int>> calls;
  std::optional<weft::Job> job;
  if (what == "endless") {
    calls.push_back(kept[1].with({.timeout_s = 1e6}).call<&Keeps::endless>());
    calls.push_back(asking[0].with({.timeout_s = 1e6}).call<&Asks::ask>(1));
  } else if (what == "calls") {
    asking[0].call<&Asks::ask>(0).get();
    kept[0].call<&Keeps::later>().get();
    kept[0].tell<&Keeps::keep>(weft::HostTensor());
    kept[0].call<&Keeps::quick>().get();
    calls.push_back(kept[1].with({.timeout_s = 1e6}).call<&Keeps::endless>());
  } else if (what == "pipes") {
    const auto writers = system.spawn(
        writes, {.name = "writes", .count = 2, .place = weft::processes(2), .own_thread = true});
    weft::Pipe<int> to_first = system.pipe<int>({.credits = 2});
    weft::Pipe<int> to_second = system.pipe<int>({.credits = 2});
    writers[0].tell<&Writes::start>(to_second.writer, to_first.reader);
    writers[1].tell<&Writes::start>(to_first.writer, to_second.reader);
  } else if (what == "again") {
    kept[0].call<&Keeps::quick>().get();
    kept[0].tell<&Keeps::die>();
    while (!kept[0].call<&Keeps::quick>().outcome().ok()) {
    }
  } else if (what == "keeps") {
    kept[2].call<&Keeps::keep>(system.loan({weft::DType::f32, {1 << 18}}).finish()).get();
  } else if (what == "learns" || what == "follows") {
    job.emplace(weft::Trainer(learner, {.scaling = {.num_workers = 1},
                                        .run = {.name = fmt::format("{}-job", argv[1]),
                                                .storage_path = std::getenv("XDG_RUNTIME_DIR")}})
                    .start());
    const auto rollouts = system.spawn(rollout, {.name = "rollouts",
                                                 .count = what == "follows" ? 1 : 2,
                                                 .own_thread = true,
                                                 .lives_with = &*job});
    rollouts[0].call<&Rollout::write>(4).get();
    rollouts[0].call<&Rollout::write>(3).get();
    if (what == "follows") rollouts[0].tell<&Rollout::wait_for_version>(1000);
  } else if (what == "fails") {
    const auto failing =
        system.spawn(keeps, {.name = "failing", .supervision = {.then = weft::ActorGivesUp::stop}});
    failing[0].tell<&Keeps::fail>();
    while (failing[0].call<&Keeps::quick>().outcome().ok()) {
    }
  }
  fmt::print("the id {}\n", system.id());
  std::fflush(stdout);
  for (;;) ::pause();
}
