#pragma once
/// Probe: an actor whose functions show what a system of actors does with their calls.

#include <weft/actor.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft::testing {

class Probe;
extern const ActorType<Probe> probe;

class Probe {
 public:
  /// Throws in incarnation config["fails_from"] and all later ones, and if "fails_at" has the
  /// actor's index and incarnation.
  explicit Probe(ActorContext& ctx);
  ~Probe();

  void append(const std::string& text) { log_ += text; }
  std::string log() const { return log_; }
  std::uint32_t incarnation() const { return ctx_.incarnation(); }
  std::uint64_t seed() const { return ctx_.seed(); }
  int pid() const;
  void fail_with(const std::string& text);
  std::string too_long() const { return std::string(100'000, 'x'); }
  HostTensor pass(HostTensor tensor) const { return tensor; }

  /// Gets its answer from release().
  void hold(Reply<int> reply) { held_.push_back(std::move(reply)); }
  /// Gets no answer from the first incarnation, but one from each later incarnation.
  void hold_first(Reply<int> reply) const;
  void throws(Reply<int> reply) const;
  int held() const { return static_cast<int>(held_.size()); }
  int awaited() const;
  void release(int value);
  void drop() { held_.clear(); }

  /// Waits for another probe's hold().
  int ask(const ActorRef<Probe>& whom) const { return whom.call<&Probe::hold>().get(); }
  /// Asks the last of these probes, which asks the one before it, and so on.
  int ask_along(const std::vector<ActorRef<Probe>>& probes) const;
  /// Asks another probe for its log, and answers with "copy of " and this log in a callback of
  /// then().
  void copy_log(const ActorRef<Probe>& whom, Reply<std::string> reply) const;
  std::vector<ActorRef<Probe>> others(const std::string& mesh) const;

  using endpoints =
      Endpoints<&Probe::append, &Probe::log, &Probe::incarnation, &Probe::seed, &Probe::pid,
                &Probe::fail_with, &Probe::too_long, &Probe::pass, &Probe::hold, &Probe::hold_first,
                &Probe::throws, &Probe::held, &Probe::awaited, &Probe::release, &Probe::drop,
                &Probe::ask, &Probe::ask_along, &Probe::copy_log, &Probe::others>;

  static inline std::atomic<int> made = 0;  ///< the number of Probes that exist in this process

 private:
  ActorContext& ctx_;
  std::string log_;
  std::vector<Reply<int>> held_;
  mutable std::vector<Reply<int>> held_first_;
};

/// An actor whose work() waits for hold() of the probe of mesh "held", once wait() was called.
class Waiter {
 public:
  explicit Waiter(ActorContext& ctx) : ctx_(ctx) {}
  void work() const {
    if (must_wait_) ctx_.find(probe, "held")[0].call<&Probe::hold>().get();
  }
  void wait() { must_wait_ = true; }
  void hello() const {}

  using endpoints = Endpoints<&Waiter::wait, &Waiter::hello>;

 private:
  ActorContext& ctx_;
  bool must_wait_ = false;
};

extern const ActorType<Waiter> waiter;

}  // namespace weft::testing
