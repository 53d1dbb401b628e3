#pragma once
/// Reply: lets an endpoint send its answer after its function has returned.

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

namespace detail {

/// Answers one call, without the type of the answer. Only the first send() or fail() counts.
/// Thread-safe.
class PendingReply {
 public:
  virtual ~PendingReply() = default;
  virtual void send(const MessageWriter& value) = 0;
  virtual void fail(const std::string& why) = 0;
  virtual bool is_awaited() const = 0;
};

/// The part of Reply that doesn't depend on the type of the answer.
class ReplyBase {
 public:
  explicit ReplyBase(std::shared_ptr<PendingReply> reply) : reply_(std::move(reply)) {}
  ReplyBase(ReplyBase&&) = default;
  ReplyBase& operator=(ReplyBase&& other) noexcept {
    std::swap(reply_, other.reply_);
    return *this;
  }
  /// If the call wasn't answered, ends it with an error.
  ~ReplyBase() {
    // If the endpoint is throwing, that exception is the answer.
    if (reply_ != nullptr && std::uncaught_exceptions() == 0) {
      reply_->fail("its Reply was destroyed without an answer");
    }
  }

  /// Ends the call with the error endpoint_failed.
  void fail(const std::string& why) { take()->fail(why); }
  /// Returns whether the caller still waits for the answer; false for messages of tell().
  bool is_awaited() const { return reply_ != nullptr && reply_->is_awaited(); }

 protected:
  std::shared_ptr<PendingReply> take() {
    if (reply_ == nullptr) weft::fail(Errc::invalid_argument, "this Reply was answered before");
    return std::exchange(reply_, nullptr);
  }

 private:
  std::shared_ptr<PendingReply> reply_;
};

}  // namespace detail

/// Answers a call later, from any thread. It is the last parameter of the endpoint:
///
///   void act(const Observation& seen, weft::Reply<Action> reply) {
///     waiting_.push_back({seen, std::move(reply)});  // answered together with others
///   }
///
/// The caller gets an R: `policy.call<&Policy::act>(seen).get()`. A second answer throws
/// invalid_argument. If the Reply is destroyed without an answer, the call ends with the error
/// endpoint_failed. Movable. One thread uses a Reply at a time.
template <typename R>
class Reply : public detail::ReplyBase {
 public:
  using detail::ReplyBase::ReplyBase;
  void send(const R& value) {
    MessageWriter out;
    MessageCodec<R>::put(out, value);
    take()->send(out);
  }
};

template <>
class Reply<void> : public detail::ReplyBase {
 public:
  using detail::ReplyBase::ReplyBase;
  void send() { take()->send(MessageWriter()); }
};

}  // namespace weft
