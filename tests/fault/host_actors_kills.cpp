#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "tests/fault/host_actors.hpp"

namespace weft::testing {

Where next_incarnation(const ActorRef<Scorer>& actor, int before) {
  for (;;) {
    const auto where = actor.call<&Scorer::where>().outcome();
    if (where.ok() && where.value().incarnation > before) return where.value();
    require(where.ok() || where.error().code() == Errc::peer_lost,
            where.ok() ? "" : where.error().what());
  }
}

namespace {

void require_lost(Future<void>& call, const std::string& text) {
  const auto outcome = call.outcome();
  require(!outcome.ok() && outcome.error().code() == Errc::peer_lost, "the error peer_lost");
  const std::string what = outcome.error().what();
  require(what.find(text) != std::string::npos, fmt::format("\"{}\" in \"{}\"", text, what));
}

}  // namespace

void kill_process(ActorSystem& system) {
  const Mesh mesh = spawn(system, 2, {.max_restarts = 5, .backoff_s = 0.01});
  const Where before = mesh[1].call<&Scorer::where>().get();
  auto hanging = mesh[1].call<&Scorer::hang>("");
  ::kill(before.pid, SIGKILL);
  require_lost(hanging, "scorers[1].hang: its process (slot 2, on host 1) died");
  const Where after = next_incarnation(mesh[1], before.incarnation);
  require(after.parent == before.parent, "it is made again on its host");
  require_plus_one(mesh[1].call<&Scorer::plus_one>(counted(system, 1000)).get(), 1000);
  for (int i = 0; i < 4; ++i) {  // slots are used again
    const Where last = mesh[1].call<&Scorer::where>().get();
    ::kill(last.pid, SIGKILL);
    next_incarnation(mesh[1], last.incarnation);
  }
  require(mesh[0].call<&Scorer::where>().get().incarnation == 1, "the other actor is untouched");
}

/// A producer on host 1 sends messages to a busy actor of host 0 until no more may be under way,
/// and is then killed. The producer's next incarnation reaches the actor.
void kill_a_sender(ActorSystem& system) {
  const auto sink =
      system.spawn(scorer, {.name = "sink", .place = processes(1, 0), .own_thread = true});
  const auto producer =
      system.spawn(scorer, {.name = "producer",
                            .place = processes(1, 1),
                            .own_thread = true,
                            .supervision = {.max_restarts = 1, .backoff_s = 0.01}});
  const std::string storage = std::getenv("STORAGE");
  auto busy = sink[0].call<&Scorer::hang>(storage + "/until");
  const Where before = producer[0].call<&Scorer::where>().get();
  auto flood = producer[0].call<&Scorer::flood>(sink[0], storage + "/floods");
  // The file has the number of the last message. The sender stops when no more messages may be
  // under way.
  const auto sent = [&] {
    int number = 0;
    std::ifstream(storage + "/floods") >> number;
    return number;
  };
  while (sent() < 128) std::this_thread::yield();
  ::kill(before.pid, SIGKILL);
  require_lost(flood, "producer[0].flood");
  std::ofstream(storage + "/until") << "now\n";
  busy.get();
  next_incarnation(producer[0], before.incarnation);
  require(producer[0].call<&Scorer::parent_of>(sink[0]).get() == getpid(), "it is reached");
}

/// While a call waits for room in the lane of a busy actor, an idle actor of the same host answers.
void call_beside_a_full_lane(ActorSystem& system) {
  const auto there = [&](const char* name) {
    return system.spawn(scorer, {.name = name, .place = processes(1, 1), .own_thread = true});
  };
  const auto busy = there("busy");
  const auto idle = there("idle");
  const std::string until = std::string(std::getenv("STORAGE")) + "/until";
  auto hanging = busy[0].call<&Scorer::hang>(until);
  for (int i = 0; i < 64; ++i) busy[0].tell<&Scorer::note>(0, i);
  const auto late = busy[0].with({.timeout_s = 0.3}).call<&Scorer::note>(1, 0).outcome();
  require(!late.ok() && late.error().code() == Errc::timeout, "a timeout");
  for (int i = 0; i < 100; ++i) idle[0].with({.timeout_s = 60}).call<&Scorer::sum>().get();
  std::ofstream(until) << "now\n";
  hanging.get();
  require(busy[0].call<&Scorer::notes>(0).get().size() == 64, "all tells");
  require(busy[0].call<&Scorer::notes>(1).get().empty(), "the late call is skipped");
}

void hang(ActorSystem& system) {
  for (const int host : {0, 1}) {
    const auto mesh = system.spawn(
        scorer, {.name = fmt::format("hang{}", host),
                 .place = processes(1, host),
                 .own_thread = true,
                 .supervision = {.max_restarts = 1, .backoff_s = 0.01, .hang_timeout_s = 0.5}});
    const Where before = mesh[0].call<&Scorer::where>().get();
    auto hanging = mesh[0].call<&Scorer::hang>("");
    require_lost(hanging, fmt::format("hang{}[0].hang: its process", host));
    require(next_incarnation(mesh[0], before.incarnation).parent == before.parent, "its host");
  }
}

void lose_host(ActorSystem& system, int signal) {
  const Mesh mesh = spawn(system, 4, {.max_restarts = 1, .backoff_s = 0.01});  // survives one loss
  const Where before = mesh[3].call<&Scorer::where>().get();
  auto hanging = mesh[3].call<&Scorer::hang>("");
  auto here = mesh[0].call<&Scorer::hang>("");
  ::kill(before.parent, signal);
  require_lost(hanging, "on host 1) died");
  const Where after = next_incarnation(mesh[3], before.incarnation);
  require(after.parent == getpid(), "it is made again on the host that remains");
  require(!here.wait_for(std::chrono::seconds(0)), "calls of host 0 continue");
  require_plus_one(mesh[2].call<&Scorer::plus_one>(counted(system, 1000)).get(), 1000);
  const auto refused = [&] {
    try {
      system.spawn(scorer, {.name = "more", .place = processes(1, 1)});
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  }();
  require(refused.find("is lost; name another host") != std::string::npos, refused);
  if (signal == SIGSTOP) ::kill(before.parent, SIGCONT);
}

/// The mesh of a lost host ends with the first cause.
void give_up(ActorSystem& system) {
  const Mesh mesh = spawn(system, 2);
  const Where before = mesh[1].call<&Scorer::where>().get();
  auto hanging = mesh[1].call<&Scorer::hang>("");
  ::kill(before.parent, SIGKILL);
  hanging.outcome();
  for (;;) {
    const auto outcome = mesh[1].call<&Scorer::sum>().outcome();
    if (!outcome.ok() && outcome.error().code() == Errc::actor_failed) break;
  }
  require(system.failure().has_value(), "the system has failed");
  const std::string why = system.failure()->what();
  require(why.find("mesh \"scorers\": host 1 (") != std::string::npos &&
              why.find("with the processes of actors 1 to 1 is lost: ") != std::string::npos,
          why);
}

}  // namespace weft::testing
