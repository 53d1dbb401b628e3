/// An actor system over several hosts, for tests: the first argument names what host 0 does with
/// it. The program ends with code 0 if all results are as expected; otherwise it prints the wrong
/// one.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "tests/fault/host_actors.hpp"
#include "tests/fault/raw_wire.hpp"

namespace {

using namespace weft::testing;

/// Returns for each actor whether it is on host 0.
std::vector<bool> are_here(const Mesh& mesh) {
  std::vector<bool> here;
  for (const Where& where : mesh.call<&Scorer::where>().get()) {
    here.push_back(where.parent == getpid());
  }
  return here;
}

void calls(weft::ActorSystem& system) {
  const Mesh mesh = spawn(system, 4);
  require(are_here(mesh) == std::vector<bool>{true, true, false, false}, "two actors on each host");
  for (const std::int64_t size : {0, 1, 1000, 1 << 20, 5 << 20}) {
    for (int i = 0; i < mesh.size(); ++i) {
      require_plus_one(mesh[i].call<&Scorer::plus_one>(counted(system, size)).get(), size);
    }
  }
  require(system.counts().copied_tensors == 0, "no copied tensor");
  std::vector<std::int64_t> values(static_cast<std::size_t>(mesh.size()) * 1750);
  std::iota(values.begin(), values.end(), 0);
  for (const auto& sums : mesh.call<&Scorer::add>(values, 7).get()) {
    require(sums.size() == values.size() && sums[0] == 7 && sums.back() == 7006, "sums");
  }
  std::vector<weft::HostTensor> parts;
  for (int i = 0; i < mesh.size(); ++i) parts.push_back(counted(system, 1000 + i));
  const auto results = mesh.scatter<&Scorer::plus_one>(parts).get();
  for (int i = 0; i < mesh.size(); ++i) {
    require_plus_one(results[static_cast<std::size_t>(i)], 1000 + i);
  }
  auto failed = mesh[3].call<&Scorer::fail_with>("a reason of its own").outcome();
  require(!failed.ok() && failed.error().code() == weft::Errc::endpoint_failed &&
              std::string(failed.error().what()).find("a reason of its own") != std::string::npos,
          "the exception's text");
  std::ofstream(std::string(std::getenv("STORAGE")) + "/memory")
      << mesh[0].call<&Scorer::memory>().get() << '\n'
      << mesh[2].call<&Scorer::memory>().get() << '\n';
  // Actors of one host call those of the other, found by name and by reference.
  const int other = mesh[3].call<&Scorer::where>().get().parent;
  require(mesh[3].call<&Scorer::parent_of_next>(0).get() == getpid(), "host 1 calls host 0");
  require(mesh[0].call<&Scorer::parent_of_next>(2).get() == other, "host 0 calls host 1");
  require(mesh[2].call<&Scorer::parent_of>(mesh[1]).get() == getpid(), "a reference is sent");
}

void tells(weft::ActorSystem& system) {
  const Mesh mesh = spawn(system, 2);
  constexpr int kCount = 3000;
  std::vector<std::jthread> senders;
  for (int sender = 0; sender < 3; ++sender) {
    senders.emplace_back([&mesh, sender] {
      for (int i = 0; i < kCount; ++i) mesh[1].tell<&Scorer::note>(sender, i);
      mesh[1].call<&Scorer::sum>().get();  // runs after all notes
    });
  }
  senders.clear();
  for (int sender = 0; sender < 3; ++sender) {
    const std::vector<int> notes = mesh[1].call<&Scorer::notes>(sender).get();
    require(notes.size() == kCount && std::ranges::is_sorted(notes), "all notes in their order");
  }
  // More bytes than may be on the way at once.
  constexpr int kTensors = 200;
  for (int i = 0; i < kTensors; ++i) {
    weft::LoanedTensor one = system.loan({weft::DType::i32, weft::Shape{1 << 18}});
    one.get<std::int32_t>()[0] = i;
    mesh[1].tell<&Scorer::take>(std::move(one).finish());
  }
  require(mesh[1].call<&Scorer::sum>().get() == kTensors * (kTensors - 1) / 2, "all tensors");
  require(system.counts().lost_tells == 0, "no lost tell");
}

void deadline(weft::ActorSystem& system) {
  const Mesh mesh = spawn(system, 2);
  mesh[1].call<&Scorer::sum>().get();
  const std::string until = std::string(std::getenv("STORAGE")) + "/until";
  auto hanging = mesh[1].call<&Scorer::hang>(until);
  for (int i = 0; i < 4; ++i) {
    const auto late = mesh[1].with({.timeout_s = 0.3}).call<&Scorer::note>(0, i).outcome();
    require(!late.ok() && late.error().code() == weft::Errc::timeout, "a timeout");
  }
  std::ofstream(until) << "now\n";
  hanging.get();
  const std::vector<int> notes = mesh[1].call<&Scorer::notes>(0).get();
  require(std::ranges::count(notes, 0) == 0, "a call that nobody awaits is skipped");
}

void refusals(weft::ActorSystem& system) {
  const Mesh mesh = spawn(system, 2);
  const auto pipe = mesh[1].call<&Scorer::pipe_error>().get();
  require(pipe.find("the actor system is on 2 hosts, and a pipe needs") != std::string::npos, pipe);
  const auto attached = mesh[1].call<&Scorer::attach_error>("hosts").get();
  require(attached.empty(), attached);  // both hosts are on one machine, so attach() works
  try {
    system.spawn(scorer, {.name = "more", .place = weft::processes(1, 2)});
    require(false, "host 2 is refused");
  } catch (const weft::Error& error) {
    const std::string what = error.what();
    require(what.find("the system has 2 hosts, so expected a host from 0 to 1") != what.npos, what);
  }
  const auto there = system.spawn(scorer, {.name = "there", .place = weft::processes(1, 1)});
  require(are_here(there) == std::vector<bool>{false}, "a mesh on host 1 alone");
  system.stop("there");
}

void count(weft::TrainContext& ctx, const weft::Config& config) {
  const auto system = weft::attach(config.at("system").get<std::string>());
  const auto mesh = system.find(scorer, "scorers");
  weft::Parameter counter = weft::make_parameter("counter", std::vector<float>{0}, {1});
  while (ctx.step() < 5) {
    counter.assign(counter + static_cast<float>(mesh[1].call<&Scorer::where>().get().incarnation));
    weft::sync();
  }
  mesh[1].call<&Scorer::hang>(config.at("until").get<std::string>()).get();
  ctx.report({{"counter", counter.item()}});
}
weft::Loop counting{"fault.count", count};

/// Host 0 trains, and its loop calls an actor of host 1. Actors of host 1 can't read the
/// parameters.
void job(weft::ActorSystem& system) {
  const Mesh mesh = spawn(system, 2);
  const std::string until = std::string(std::getenv("STORAGE")) + "/until";
  weft::Trainer trainer(counting, {.loop_config = {{"system", system.id()}, {"until", until}},
                                   .scaling = {.num_workers = 1},
                                   .run = {.storage_path = std::getenv("STORAGE")}});
  weft::Job training = trainer.start();
  const auto there = system.spawn(
      scorer, {.name = "there", .place = weft::processes(1, 1), .lives_with = &training});
  const std::string refused = there[0].call<&Scorer::parameters_error>().get();
  require(refused.find("parameters(\"policy\"): this process is on host 1") != refused.npos,
          refused);
  std::ofstream(until) << "now\n";
  const weft::Result result = training.result();
  require(result.ok(), result.error ? result.error->message : "");
  require(result.metrics.at("counter") == 5, "five calls");
}

void three(weft::ActorSystem& system) {
  const Mesh mesh = spawn(system, 3, {.max_restarts = 3, .backoff_s = 0.01});
  const int first = mesh[1].call<&Scorer::where>().get().parent;
  const int second = mesh[2].call<&Scorer::where>().get().parent;
  require(first != second && first != getpid() && second != getpid(), "three hosts");
  require(mesh[1].call<&Scorer::parent_of_next>(2).get() == second, "host 1 calls host 2");
  require(mesh[2].call<&Scorer::parent_of>(mesh[1]).get() == first, "host 2 calls host 1");
  ::kill(second, SIGKILL);
  const Where after = next_incarnation(mesh[2], 1);
  require(after.parent == getpid() || after.parent == first, "it is made again elsewhere");
  require(mesh[1].call<&Scorer::parent_of_next>(0).get() == getpid(), "host 1 still calls");
}

/// Prints the times of calls, and the rate of tensors.
void figures(weft::ActorSystem& system) {
  const Mesh mesh = spawn(system, 2);
  using Clock = std::chrono::steady_clock;
  const auto time = [](int count, const std::function<void()>& what) {
    std::vector<double> us;
    for (int i = 0; i < count; ++i) {
      const auto begin = Clock::now();
      what();
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    std::ranges::sort(us);
    return fmt::format("{:.1f} us (median), {:.1f} us (p99)", us[us.size() / 2],
                       us[us.size() * 99 / 100]);
  };
  const int repeats = std::atoi(std::getenv("REPEATS"));
  weft::testing::print_raw_figures(repeats);
  for (const std::int64_t words : {4, 512}) {
    const std::vector<std::int64_t> values(static_cast<std::size_t>(words));
    for (int i = 0; i < 2; ++i) {
      fmt::print("call of {} bytes on host {}: {}\n", words * 8, i,
                 time(repeats, [&] { mesh[i].call<&Scorer::add>(values, 1).get(); }));
    }
  }
  const weft::HostTensor large = counted(system, 4 << 20);
  for (int i = 0; i < 2; ++i) {
    const int count = std::max(repeats / 40, 2);
    const auto begin = Clock::now();
    for (int n = 0; n < count; ++n) mesh[i].tell<&Scorer::take>(large);
    mesh[i].call<&Scorer::sum>().get();
    const double s = std::chrono::duration<double>(Clock::now() - begin).count();
    fmt::print("tensors of 16 MiB to host {}: {:.0f} MiB/s\n", i, 16 * count / s);
  }
}

const std::map<std::string, std::function<void(weft::ActorSystem&)>> kScenarios{
    {"calls", calls},
    {"tells", tells},
    {"deadline", deadline},
    {"kill", kill_process},
    {"lose", [](weft::ActorSystem& system) { lose_host(system, SIGKILL); }},
    {"kill_a_sender", kill_a_sender},
    {"full_lane", call_beside_a_full_lane},
    {"hang", hang},
    {"silence", [](weft::ActorSystem& system) { lose_host(system, SIGSTOP); }},
    {"give_up", give_up},
    {"refusals", refusals},
    {"job", job},
    {"three", three},
    {"figures", figures}};

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  try {
    const auto& scenario = kScenarios.at(argv[1]);
    weft::ActorHosts hosts{.timeout_s = argc > 2 ? std::atof(argv[2]) : 120, .host_timeout_s = 3};
    if (const char* folder = std::getenv("STORAGE")) hosts.storage_path = folder;
    weft::ActorSystem system({.name = argc > 3 ? argv[3] : "hosts", .hosts = hosts});
    scenario(system);
    fmt::print("as expected\n");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
