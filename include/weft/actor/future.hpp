#pragma once
/// The answers to calls: Future for a call of one actor, Gather for calls of the actors of a mesh.

#include <chrono>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/actor/call.hpp>
#include <weft/actor/outcome.hpp>
#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>

namespace weft {

/// The answer to one call. Movable. If a Future is destroyed, its call still runs, and the answer
/// is dropped. One thread uses a Future at a time.
template <typename R>
class Future {
 public:
  explicit Future(std::shared_ptr<detail::PendingCall> call) : call_(std::move(call)) {}

  /// Waits for the answer. Throws the call's error: endpoint_failed with the text of the exception
  /// that the endpoint threw, timeout, cancelled, overloaded, peer_lost, corrupt or version.
  R get() { return outcome_of_wait().value(); }
  /// Waits as get() does, but returns the error.
  Outcome<R> outcome() { return outcome_of_wait(); }
  /// Waits for the end of the call, at most for `time`. Returns whether the call has ended.
  bool wait_for(std::chrono::nanoseconds time) { return call_->wait_until(call_->now() + time); }
  /// Calls `done` with the outcome, on the thread `weft.replies`. `done` must not block.
  void then(std::function<void(Outcome<R>)> done) {
    call_->when_done([call = call_, done = std::move(done)] { done(read(call->answer())); });
  }
  /// Ends the call with the error cancelled. If the endpoint hasn't begun, it doesn't run.
  void cancel() { call_->cancel(); }

 private:
  Outcome<R> outcome_of_wait() {
    call_->wait_until(std::chrono::steady_clock::time_point::max());
    return read(call_->answer());
  }
  static Outcome<R> read(const detail::Answer& answer) {
    if (answer.error) return *answer.error;
    try {
      MessageReader in(answer.bytes, answer.payloads, answer.process);
      if constexpr (std::is_void_v<R>) {
        in.finish();
        return {};
      } else {
        Outcome<R> value(MessageCodec<R>::get(in));
        in.finish();
        return value;
      }
    } catch (const Error& error) {
      return error;
    }
  }

  std::shared_ptr<detail::PendingCall> call_;
};

/// The answers to calls of several actors, in the order of the mesh.
template <typename R>
class Gather {
 public:
  explicit Gather(std::vector<Future<R>> calls) : calls_(std::move(calls)) {}

  /// Waits for all answers and returns them. If calls failed, throws the error of the first such
  /// actor in the mesh.
  auto get() {
    std::vector<Outcome<R>> all = outcomes();
    if constexpr (std::is_void_v<R>) {
      for (const Outcome<R>& outcome : all) outcome.value();
    } else {
      std::vector<R> values;
      for (Outcome<R>& outcome : all) values.push_back(std::move(outcome).value());
      return values;
    }
  }
  /// Waits for all answers, and returns a value or an error for each actor.
  std::vector<Outcome<R>> outcomes() {
    std::vector<Outcome<R>> all;
    for (Future<R>& call : calls_) all.push_back(call.outcome());
    return all;
  }
  void cancel() {
    for (Future<R>& call : calls_) call.cancel();
  }

 private:
  std::vector<Future<R>> calls_;
};

}  // namespace weft
