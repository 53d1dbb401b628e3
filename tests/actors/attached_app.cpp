/// The other program of the tests of weft::attach().
///
///   attached_app serve NAME    has an actor system of this name until SIGTERM
///   attached_app flood NAME    attaches, and makes hundreds of calls that aren't answered yet
///   attached_app attach NAME   attaches to the system, holds tensors of it until it is killed

#include <weft/actor.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace attached {

struct Item {
  std::int32_t id = 0;
  float weight = 1;
  std::string note;
};
struct Found {
  std::int32_t id = 0;
  float weight = 0;
  std::string note;
};

class Store {
 public:
  std::uint32_t add(const Item& item) {
    items_[item.id] = item;
    return static_cast<std::uint32_t>(items_.size());
  }
  std::optional<Found> find(std::int32_t id) const {
    const auto found = items_.find(id);
    if (found == items_.end()) return std::nullopt;
    return Found{.id = id, .weight = found->second.weight, .note = found->second.note};
  }
  std::vector<weft::HostTensor> echo(const weft::HostTensor& tensor) const {
    return {tensor, tensor};
  }
  void wait(weft::Reply<int> reply) { waiting_.push_back(std::move(reply)); }
  void release() {
    for (auto& reply : std::exchange(waiting_, {})) reply.send(1);
  }
  std::vector<weft::ActorRef<Store>> peers() const;
  std::int64_t narrow() const { return 1; }
  void forget() { items_.clear(); }
  explicit Store(weft::ActorContext& ctx) : ctx_(ctx) {}
  using endpoints = weft::Endpoints<&Store::forget, &Store::release, &Store::peers, &Store::add,
                                    &Store::find, &Store::echo, &Store::wait, &Store::narrow>;

 private:
  weft::ActorContext& ctx_;
  std::map<std::int32_t, Item> items_;
  std::vector<weft::Reply<int>> waiting_;
};
const weft::ActorType<Store> store{"attached.store"};

std::vector<weft::ActorRef<Store>> Store::peers() const { return {ctx_.find(store, "here")[0]}; }

sigset_t term() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}

int serve(const std::string& name) {
  const sigset_t blocked = term();
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  weft::ActorSystem system{{.name = name}};
  system.spawn(store, {.name = "here"});
  system.spawn(store, {.name = "stores", .count = 2, .place = weft::processes(2)});
  fmt::print("system {}\n", system.id());
  std::fflush(stdout);
  int signal = 0;
  sigset_t waited = term();
  ::sigwait(&waited, &signal);
  return 0;
}

int flood(const std::string& name) {
  const weft::AttachedSystem system = weft::attach(name);
  const auto here = system.find(store, "here")[0].with({.timeout_s = 1e6});
  std::vector<weft::Future<int>> calls;
  for (int i = 0; i < 400; ++i) calls.push_back(here.call<&Store::wait>());
  here.call<&Store::find>(1).get();  // so all calls have begun
  fmt::print("flooded\n");
  std::fflush(stdout);
  for (;;) ::pause();
}

int attach(const std::string& name) {
  const weft::AttachedSystem system = weft::attach(name);
  const auto stores = system.find(store, "stores");
  std::vector<std::vector<weft::HostTensor>> held;
  for (int i = 0; i < 100; ++i) {
    weft::LoanedTensor tensor = system.loan({weft::DType::f32, {1 << 14}});
    held.push_back(stores[i % 2].call<&Store::echo>(std::move(tensor).finish()).get());
  }
  fmt::print("attached\n");
  std::fflush(stdout);
  for (;;) ::pause();
}

}  // namespace attached

WEFT_MESSAGE(attached::Item, id, weight, note);
WEFT_MESSAGE(attached::Found, id, weight, note);

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  if (argc != 3) return 1;
  const std::string name = argv[2];
  const std::string_view what = argv[1];
  if (what == "serve") return attached::serve(name);
  return what == "flood" ? attached::flood(name) : attached::attach(name);
}
