#include "tests/actors/probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace weft::testing {

Probe::Probe(ActorContext& ctx) : ctx_(ctx) {
  const std::uint32_t first_that_fails = ctx.config().value("fails_from", ~0U);
  const std::vector<std::uint32_t> fails_at =
      ctx.config().value("fails_at", std::vector<std::uint32_t>{~0U, 0});
  const bool is_at =
      fails_at[0] == static_cast<std::uint32_t>(ctx.index()) && fails_at[1] == ctx.incarnation();
  if (ctx.incarnation() >= first_that_fails || is_at) {
    throw std::runtime_error("no memory for a probe");
  }
  ++made;
}

Probe::~Probe() { --made; }

int Probe::pid() const { return getpid(); }

void Probe::fail_with(const std::string& text) { throw std::runtime_error(text); }

void Probe::hold_first(Reply<int> reply) const {
  if (ctx_.incarnation() == 1) {
    held_first_.push_back(std::move(reply));
  } else {
    reply.send(static_cast<int>(ctx_.incarnation()));
  }
}

void Probe::throws(Reply<int>) const { throw std::runtime_error("no ink"); }

int Probe::awaited() const {
  return static_cast<int>(std::ranges::count_if(held_, &Reply<int>::is_awaited));
}

void Probe::release(int value) {
  for (Reply<int>& reply : held_) reply.send(value);
  held_.clear();
}

int Probe::ask_along(const std::vector<ActorRef<Probe>>& probes) const {
  if (probes.empty()) return 0;
  const std::vector<ActorRef<Probe>> rest(probes.begin(), probes.end() - 1);
  return 1 + probes.back().call<&Probe::ask_along>(rest).get();
}

void Probe::copy_log(const ActorRef<Probe>& whom, Reply<std::string> reply) const {
  auto later = std::make_shared<Reply<std::string>>(std::move(reply));
  whom.call<&Probe::log>().then(
      [later](const Outcome<std::string>& log) { later->send("copy of " + log.value()); });
}

std::vector<ActorRef<Probe>> Probe::others(const std::string& mesh) const {
  const ActorMesh<Probe> found = ctx_.find(probe, mesh);
  std::vector<ActorRef<Probe>> all;
  for (int i = 0; i < found.size(); ++i) all.push_back(found[i]);
  return all;
}

const ActorType<Probe> probe{"test.probe"};
const ActorType<Waiter> waiter{"test.waiter"};

}  // namespace weft::testing
