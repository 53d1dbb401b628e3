#pragma once
/// Calls: the calls of this process that wait for their answers.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include <weft/actor/call.hpp>

#include "actors/table/actor_protocol.hpp"
#include "transport/lanes/peer_memory.hpp"

namespace weft {

class ActorCall;

/// The interface that a process offers to its calls.
class CallHost {
 public:
  virtual ~CallHost() = default;
  /// Lets the calling thread wait for the call; see PendingCall::wait_until().
  virtual bool wait(ActorCall& call, std::chrono::steady_clock::time_point time) = 0;
  virtual std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::now();
  }
  /// Runs the callback `done` soon: in run_ready() if the program made the call and uses
  /// run_ready(), otherwise on the thread `weft.replies`.
  virtual void post(std::function<void()> done, bool is_the_programs) = 0;
  /// Changes the number of callbacks that wait for an answer.
  virtual void watch(int more_callbacks) noexcept = 0;
  /// Ends the call, unless it has ended already. The actor then skips the call.
  virtual void end(ActorCall& call, detail::Answer answer) = 0;
};

/// One call. It ends once, with an answer or an error.
class ActorCall final : public detail::PendingCall {
 public:
  using Clock = std::chrono::steady_clock;
  struct What {
    ActorOp op = ActorOp::call;
    std::uint32_t row = 0;
    detail::EndpointId endpoint{};
    std::uint32_t from = 0;  ///< the calling actor's row + 1; 0: no actor
  };

  ActorCall(std::shared_ptr<CallHost> host, What its_what, MessageWriter its_message,
            Clock::time_point its_deadline, double its_timeout_s)
      : what(its_what),
        message(std::move(its_message)),
        deadline(its_deadline),
        timeout_s(its_timeout_s),
        host_(std::move(host)) {}

  bool wait_until(Clock::time_point time) override { return host_->wait(*this, time); }
  Clock::time_point now() const override { return host_->now(); }
  const detail::Answer& answer() const override { return answer_; }
  void when_done(std::function<void()> done) override;
  void cancel() override;
  /// Cancels the call when a stop is requested. May be called once.
  void cancel_on(const std::stop_token& stop);

  bool is_done() const noexcept { return is_done_.load(std::memory_order_acquire); }
  /// Ends the call with this answer. Returns false if it had ended already.
  bool finish(detail::Answer answer);

  /// Sleeps until the call ends, poke() is called, or `at_most` has passed. For a thread that
  /// doesn't itself take the answers.
  void sleep(std::chrono::nanoseconds at_most);
  void poke() noexcept;

  const What what;
  const MessageWriter message;
  const Clock::time_point deadline;
  const double timeout_s;
  // Calls guards the following members by its mutex. Only the thread that has taken the call out
  // uses `was_lost`.
  std::uint64_t number = 0;  ///< 0: not sent
  PeerId sent_to{};
  bool was_lost = false;  ///< the call is sent for the second time
  /// The last number that the call was given; 0: none. Any thread may read it.
  std::atomic<std::uint64_t> sent_as{0};

 private:
  std::shared_ptr<CallHost> host_;
  std::atomic<bool> is_done_{false};
  std::atomic<std::uint32_t> pokes_{0};
  std::atomic<bool> is_awaited_{false};
  std::mutex mutex_;
  detail::Answer answer_{};                       // guarded by mutex_ until is_done_
  std::vector<std::function<void()>> callbacks_;  // guarded by mutex_
  struct CancelIt {
    ActorCall* call;
    void operator()() const { call->cancel(); }
  };
  std::optional<std::stop_callback<CancelIt>> on_stop_;
};

/// Gives numbers to calls that are sent, and finds calls by their numbers. While a call waits, its
/// number is also in this process's shared memory, where actors see whether somebody still waits
/// for their answer. Thread-safe.
class Calls {
 public:
  using Clock = ActorCall::Clock;

  explicit Calls(PeerMemory& own);

  struct Begun {
    std::uint64_t number;
    bool is_earliest;  ///< whether its deadline is earlier than earliest() was before
  };
  /// Gives the call a number. Throws overloaded if kCallCountMax calls already wait.
  Begun begin(const std::shared_ptr<ActorCall>& call, PeerId to);
  /// Removes and returns the call, so that an answer to it is dropped. Returns null if there is
  /// none.
  std::shared_ptr<ActorCall> take(std::uint64_t number);
  /// Removes the call if it is there.
  void take(const ActorCall& call);
  /// Returns the number of a waiting call; 0 if the call doesn't wait.
  std::uint64_t number_of(const ActorCall& call);
  /// Removes and returns the calls for which `is_wanted` returns true.
  std::vector<std::shared_ptr<ActorCall>> take_if(
      const std::function<bool(const ActorCall&)>& is_wanted);
  /// Removes and returns the calls whose deadline is over.
  std::vector<std::shared_ptr<ActorCall>> take_expired(Clock::time_point now);
  /// Returns a time that isn't later than the deadline of any call.
  Clock::time_point earliest() const { return earliest_.load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<ActorCall> take_locked(std::uint32_t index);
  std::vector<std::shared_ptr<ActorCall>> take_if_locked(
      const std::function<bool(const ActorCall&)>& is_wanted);

  PeerMemory* own_;
  std::atomic<Clock::time_point> earliest_{Clock::time_point::max()};
  std::mutex mutex_;
  std::vector<std::shared_ptr<ActorCall>> calls_;  ///< by number % kCallCountMax
  std::vector<std::uint32_t> free_;
  std::vector<std::uint64_t> rounds_;  ///< by index: how often the index was used
};

}  // namespace weft
