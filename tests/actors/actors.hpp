#pragma once
/// The actors that tests of actors call.

#include <weft/actor.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::testing {

struct Named {
  std::string name{};
  std::map<std::string, std::vector<double>> values{};
  std::optional<int> extra{};
};

/// An actor that answers in the ways that tests need.
class Echo {
 public:
  explicit Echo(ActorContext& ctx) : ctx_(ctx) { ++made; }
  ~Echo() { --made; }

  int add(int a, int b) const { return a + b; }
  Named same(const Named& value) const { return value; }
  void append(const std::string& text) { log_ += text; }
  std::string log() const { return log_; }
  std::uint64_t incarnation() const { return ctx_.incarnation(); }
  int pid() const;
  void fail_with(const std::string& text);
  HostTensor doubled(const HostTensor& tensor) const;
  HostTensor pass(HostTensor tensor) const { return tensor; }
  /// Waits until a stop is requested.
  int wait_for_stop() const;
  /// Ends the process as a kill from outside does.
  void kill_process() const;
  /// Kills the process only the first time, when the file doesn't exist yet.
  int kill_process_once(const std::string& file) const;
  std::string too_long() const { return std::string(100'000, 'x'); }

  using endpoints =
      Endpoints<&Echo::add, &Echo::same, &Echo::append, &Echo::log, &Echo::incarnation, &Echo::pid,
                &Echo::fail_with, &Echo::doubled, &Echo::pass, &Echo::wait_for_stop,
                &Echo::kill_process, &Echo::kill_process_once, &Echo::too_long>;

  static inline std::atomic<int> made = 0;  ///< the number of Echos that exist in this process

 private:
  ActorContext& ctx_;
  std::string log_;
};

/// An actor that calls other actors.
class Caller {
 public:
  explicit Caller(ActorContext& ctx) : ctx_(ctx) {}
  /// Adds the numbers by a call of actor `index` of mesh "echo".
  int add(int index, int a, int b) const;

  using endpoints = Endpoints<&Caller::add>;

 private:
  ActorContext& ctx_;
};

/// An actor that counts in work(), and fails when it is told to.
class Worker {
 public:
  explicit Worker(ActorContext& ctx);
  void work();
  int count() const { return count_; }
  void fail_in_work() { must_fail_ = true; }

  using endpoints = Endpoints<&Worker::count, &Worker::fail_in_work>;

 private:
  ActorContext& ctx_;
  int count_ = 0;
  bool must_fail_ = false;
};

/// An actor that calls actors given by reference, and gives answers later.
class Desk {
 public:
  explicit Desk(ActorContext& ctx) : ctx_(ctx) {}
  int ask(const ActorRef<Echo>& whom, int a, int b) const {
    return whom.call<&Echo::add>(a, b).get();
  }
  std::vector<ActorRef<Echo>> echoes() const;
  ActorRef<Desk> self() const;
  /// Answers with twice the number when answer_all() is called.
  void later(int number, Reply<int> reply) { open_.push_back({number, std::move(reply)}); }
  void at_once(int number, Reply<int> reply) const { reply.send(number); }
  void never(Reply<void> reply) const { reply.fail("closed on Sundays"); }
  void throws(Reply<int> reply) const;
  void answer_all();
  void drop_all() { open_.clear(); }
  int awaited() const;
  /// Asks the last of these desks, which asks the one before it, and so on. Desk 0 answers.
  int ask_along(const std::vector<ActorRef<Desk>>& desks);
  int zero() const { return 0; }
  /// Keeps its core busy for this number of milliseconds.
  void spin(int ms) const;

  using endpoints = Endpoints<&Desk::ask, &Desk::echoes, &Desk::self, &Desk::later, &Desk::at_once,
                              &Desk::never, &Desk::throws, &Desk::answer_all, &Desk::drop_all,
                              &Desk::awaited, &Desk::ask_along, &Desk::zero, &Desk::spin>;

 private:
  struct Open {
    int number;
    Reply<int> reply;
  };
  ActorContext& ctx_;
  std::vector<Open> open_;
};

extern const ActorType<Desk> desk;
extern const ActorType<Echo> echo;
extern const ActorType<Caller> caller;
extern const ActorType<Worker> worker;

}  // namespace weft::testing
