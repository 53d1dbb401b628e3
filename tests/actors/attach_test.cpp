/// Tests programs that call the actors of another program's system.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/lanes/peer_memory.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft::attach_test {

/// The types of attached_app, as another version of the program declares them.
struct Item {
  std::string note;
  std::int16_t id = 0;
  std::vector<int> dropped{};
};
struct Found {
  double weight = 0;
  std::vector<int> extra{1, 2};
  std::int64_t id = 0;
};

class Store {
 public:
  std::uint64_t add(const Item&);
  std::optional<Found> find(std::int32_t) const;
  std::vector<HostTensor> echo(const HostTensor&) const;
  void wait(Reply<int>);
  std::int32_t narrow() const;
  int fresh() const;
  std::vector<ActorRef<Store>> peers() const;
  void release();
  using endpoints = Endpoints<&Store::peers, &Store::release, &Store::add, &Store::find,
                              &Store::echo, &Store::wait, &Store::narrow, &Store::fresh>;
};

std::uint64_t Store::add(const Item&) { return 0; }
std::optional<Found> Store::find(std::int32_t) const { return std::nullopt; }
std::vector<HostTensor> Store::echo(const HostTensor&) const { return {}; }
void Store::wait(Reply<int>) {}
std::int32_t Store::narrow() const { return 0; }
int Store::fresh() const { return 0; }
std::vector<ActorRef<Store>> Store::peers() const { return {}; }
void Store::release() {}

const ActorType<Store> store{"attached.store"};

}  // namespace weft::attach_test

WEFT_MESSAGE(weft::attach_test::Item, note, id, dropped);
WEFT_MESSAGE(weft::attach_test::Found, weight, extra, id);

namespace weft::attach_test {
namespace {

using testing::AppProcess;
using testing::expect_error;
using testing::wait_until;

/// A program with an actor system, in a control root of its own.
class Server {
 public:
  Server()
      : name_("attached-" + testing::unique_job()),
        app_({ATTACHED_APP, "serve", name_}, {"XDG_RUNTIME_DIR=" + root_.path()}),
        id_(app_.wait_for_line("system ").substr(7)) {}
  ~Server() {
    kill();
    PeerTable::remove(id_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& name() const { return name_; }
  const std::string& id() const { return id_; }
  pid_t pid() const { return app_.pid(); }
  const std::string& output() const { return app_.output(); }
  void kill() { end(SIGKILL); }
  void end(int signal) {
    if (app_.pid() <= 0) return;
    ::kill(app_.pid(), signal);
    app_.wait();
  }

 private:
  testing::TemporaryFolder root_;
  std::string name_;
  AppProcess app_;
  std::string id_;
};

/// Returns how many processes the table has.
int processes_of(const std::string& system) {
  const PeerTable table = PeerTable::open(system);
  int count = 0;
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    count += table.life(slot).state != PeerState::free ? 1 : 0;
  }
  return count;
}

/// Returns how many blocks of all processes are held.
int held_blocks(const std::string& system) {
  const PeerTable table = PeerTable::open(system);
  int count = 0;
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    const PeerLife life = table.life(slot);
    if (life.state != PeerState::alive) continue;
    const PeerMemory memory =
        PeerMemory::open(system, {.slot = slot, .incarnation = life.incarnation});
    for (std::uint32_t block = 0; block < memory.block_count(); ++block) {
      for (const auto& holders : memory.ledger_row(block).holders) {
        count += holders.load() != 0 ? 1 : 0;
      }
    }
  }
  return count;
}

TEST(Attach, CallsActorsOfAnotherProgram) {
  const Server server;
  const AttachedSystem system = attach(server.name());
  EXPECT_EQ(system.id(), server.id());
  EXPECT_EQ(system.name(), server.name());
  EXPECT_EQ(system.meshes(), (std::vector<std::string>{"here", "stores"}));
  const auto stores = system.find(store, "stores");
  ASSERT_EQ(stores.size(), 2);
  EXPECT_EQ(stores[0].name(), "stores[0]");
  LoanedTensor loan = system.loan({DType::f32, {1024}});
  for (float& value : loan.get<float>()) value = 2.5F;
  const auto echoed = stores[1].call<&Store::echo>(std::move(loan).finish()).get();
  ASSERT_EQ(echoed.size(), 2U);
  EXPECT_EQ(echoed[1].get<float>()[1023], 2.5F);
}

TEST(Attach, TranslatesBetweenVersionsOfAClass) {
  const Server server;
  const AttachedSystem system = attach(server.id().substr(0, 12));
  const auto here = system.find(store, "here")[0];
  EXPECT_EQ(here.call<&Store::add>(Item{.note = "nine", .id = -9, .dropped = {1}}).get(), 1U);
  here.tell<&Store::add>(Item{.note = "ten", .id = 10});
  const std::optional<Found> found = here.call<&Store::find>(-9).get();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->id, -9);
  EXPECT_EQ(found->weight, 1.0);                      // the default in attached_app
  EXPECT_EQ(found->extra, (std::vector<int>{1, 2}));  // the default in this file
  EXPECT_TRUE(here.call<&Store::find>(10).get().has_value());
  EXPECT_FALSE(here.call<&Store::find>(11).get().has_value());
}

TEST(Attach, NamesBothSchemasIfACallCantBeTranslated) {
  const Server server;
  const AttachedSystem system = attach(server.name());
  const auto here = system.find(store, "here")[0];
  expect_error(Errc::version,
               {"here[0]: this program declares the endpoint narrow()->i32 const, and the actor "
                "system's program has narrow()->i64 const; a i64 can't become a i32"},
               [&] { here.call<&Store::narrow>().get(); });
  expect_error(Errc::version,
               {"here[0]: this program declares the endpoint fresh()->i32 const, and the actor "
                "system's program has none of this name; that program may be older or newer"},
               [&] { here.tell<&Store::fresh>(); });
}

TEST(Attach, EndsCallsWhenTheProgramDies) {
  Server server;
  const AttachedSystem system = attach(server.name());
  const auto stores = system.find(store, "stores").with({.timeout_s = 1e6});
  auto call = stores[0].call<&Store::wait>();
  std::atomic<bool> called_back = false;
  stores[1].call<&Store::wait>().then(
      [&](const Outcome<int>& outcome) { called_back = !outcome.ok(); });
  server.kill();
  const auto outcome = call.outcome();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::peer_lost) << outcome.error().what();
  wait_until([&] { return called_back.load() && system.has_ended(); });
  EXPECT_FALSE(stores[0].call<&Store::find>(1).outcome().ok());
  EXPECT_THROW((void)attach(server.name()), Error);
}

TEST(Attach, EndsCallsWhenTheSystemEnds) {
  Server server;
  const AttachedSystem system = attach(server.name());
  auto call = system.find(store, "stores")[0].with({.timeout_s = 1e6}).call<&Store::wait>();
  server.end(SIGTERM);
  EXPECT_FALSE(call.outcome().ok());
  wait_until([&] { return system.has_ended(); });
}

TEST(Attach, OfAProgramThatIsKilledLeavesNothing) {
  const Server server;
  const int processes = processes_of(server.id());
  for (int i = 0; i < 3; ++i) {
    AppProcess other({ATTACHED_APP, "attach", server.name()});
    ASSERT_NE(other.wait_for_line("attached"), "");
    EXPECT_GT(held_blocks(server.id()), 0);
    ::kill(other.pid(), SIGKILL);
    other.wait();
    wait_until([&] { return processes_of(server.id()) == processes; });
    wait_until([&] { return held_blocks(server.id()) == 0; });
  }
  const AttachedSystem system = attach(server.name());
  EXPECT_EQ(system.find(store, "stores")[0].call<&Store::find>(1).get().has_value(), false);
}

TEST(Attach, DetachesWhileItsTensorsAreHeld) {
  const Server server;
  const int processes = processes_of(server.id());
  std::vector<HostTensor> held;
  std::optional<AttachedSystem> system = attach(server.name());
  const auto here = system->find(store, "here")[0];
  LoanedTensor loan = system->loan({DType::i32, {4096}});
  for (std::int32_t& value : loan.get<std::int32_t>()) value = 7;
  held = here.call<&Store::echo>(std::move(loan).finish()).get();
  auto call = here.call<&Store::wait>();
  system.reset();
  EXPECT_EQ(call.outcome().error().code(), Errc::cancelled);
  EXPECT_EQ(here.call<&Store::find>(1).outcome().error().code(), Errc::cancelled);
  for (const std::int32_t value : held[0].get<std::int32_t>()) ASSERT_EQ(value, 7);
  EXPECT_EQ(processes_of(server.id()), processes + 1);
}

TEST(Attach, AnswersWithReferencesOutliveTheSystem) {
  const Server server;
  std::optional<AttachedSystem> system = attach(server.name());
  auto peers = system->find(store, "here")[0].call<&Store::peers>();
  ASSERT_TRUE(peers.wait_for(std::chrono::seconds(300)));
  system.reset();
  const std::vector<ActorRef<Store>> refs = peers.get();
  ASSERT_EQ(refs.size(), 1U);
  EXPECT_EQ(refs[0].name(), "here[0]");
  EXPECT_EQ(refs[0].call<&Store::find>(1).outcome().error().code(), Errc::cancelled);
}

TEST(Attach, LetsOthersGoOnWhileItIsDetachedButHeld) {
  const Server server;
  std::optional<AttachedSystem> first = attach(server.name());
  const auto held = first->find(store, "here")[0];  // keeps the place of `first` in the table
  first.reset();
  const int processes = processes_of(server.id());
  {
    const AttachedSystem second = attach(server.name());
    (void)second.find(store, "here")[0].call<&Store::find>(1).get();
  }
  wait_until([&] { return processes_of(server.id()) == processes; });
  EXPECT_FALSE(held.call<&Store::find>(1).outcome().ok());
}

TEST(Attach, ThatFailsGivesItsPlaceBack) {
  const Server server;
  const int processes = processes_of(server.id());
  for (int i = 0; i < 300; ++i) {
    expect_error(Errc::invalid_argument, {"heap_bytes = 1"},
                 [&] { (void)attach(server.name(), {.heap_bytes = 1}); });
  }
  EXPECT_EQ(processes_of(server.id()), processes);
}

/// The attached program is stopped before it takes any of hundreds of answers.
TEST(Attach, DoesntStopTheActorsOfOthersWhenItIsStopped) {
  Server server;
  AppProcess other({ATTACHED_APP, "flood", server.name()});
  ASSERT_NE(other.wait_for_line("flooded"), "");
  ::kill(other.pid(), SIGSTOP);
  const AttachedSystem system = attach(server.name());
  const auto here = system.find(store, "here")[0].with({.timeout_s = 1000});
  here.tell<&Store::release>();  // answers all waiting calls
  EXPECT_FALSE(here.call<&Store::find>(1).get().has_value());
  ::kill(other.pid(), SIGKILL);
  other.wait();
  server.end(SIGTERM);
  EXPECT_NE(server.output().find("takes no answers; they are dropped"), std::string::npos)
      << server.output();
}

TEST(Attach, FreesItsPlaceWhenNothingOfItIsHeld) {
  const Server server;
  const int processes = processes_of(server.id());
  for (int i = 0; i < 300; ++i) {  // more programs than the system has places for
    const AttachedSystem system = attach(server.name());
    EXPECT_FALSE(system.find(store, "here")[0].call<&Store::find>(1).get().has_value());
  }
  wait_until([&] { return processes_of(server.id()) == processes; });
}

TEST(Attach, RefusesWhatCantBe) {
  const Server server;
  expect_error(Errc::invalid_argument, {"expected the name"}, [] { (void)attach(""); });
  expect_error(Errc::not_found,
               {"attach(\"no-such-system\"): this user has no running actor system"},
               [] { (void)attach("no-such-system"); });
  expect_error(Errc::invalid_argument, {"wait_s = -1"},
               [&] { (void)attach(server.name(), {.wait_s = -1}); });
  const AttachedSystem system = attach(server.name());
  expect_error(Errc::not_found,
               {"there is no mesh of actors \"nobody\"; the system has: here, stores"},
               [&] { (void)system.find(store, "nobody"); });
  expect_error(Errc::not_found,
               {"fits 0 of the jobs", "these jobs are: none (SpawnOptions::lives_with)"},
               [&] { (void)system.post({.name = "save"}); });
}

/// Runs until it reads the command "end".
Loop commanded_loop{"test.attach", [](TrainContext& ctx) {
                      Parameter weight = make_parameter("weight", std::vector<float>{1}, {1});
                      for (;;) {
                        for (const Command& command : ctx.commands()) {
                          if (command.name == "end") return;
                        }
                        weight.assign(weight + 1);
                        sync();
                      }
                    }};

TEST(Attach, PostsCommandsToTheJobOfTheSystem) {
  const testing::TemporaryFolder folder;
  ActorSystem own{{.name = "attached-" + testing::unique_job()}};
  Job job = Trainer{commanded_loop,
                    {.scaling = {.num_workers = 1}, .run = {.storage_path = folder.path()}}}
                .start();
  own.spawn(store, {.lives_with = &job});
  const AttachedSystem system = attach(own.id());
  const std::uint64_t first = system.post({.name = "save"});
  EXPECT_GE(system.post({.name = "end"}, 1000, job.info().id.substr(0, 8)), first);
  expect_error(Errc::not_found, {"job = \"f00\" fits 0 of the jobs"},
               [&] { (void)system.post({.name = "end"}, 1, "f00"); });
  EXPECT_TRUE(job.result().ok());
}

TEST(Attach, WaitsForASystemThatStartsLater) {
  const std::string name = "attached-" + testing::unique_job();
  std::optional<AttachedSystem> attached;
  std::jthread waits([&] { attached = attach(name, {.wait_s = 300}); });
  ActorSystem system{{.name = name}};
  waits.join();
  EXPECT_EQ(attached->id(), system.id());
  EXPECT_TRUE(attached->meshes().empty());
}

}  // namespace
}  // namespace weft::attach_test
