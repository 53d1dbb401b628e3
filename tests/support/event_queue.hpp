#pragma once
/// EventQueue: events in virtual time, with random delays that a seed determines.

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>

namespace weft::testing {

class EventQueue {
 public:
  explicit EventQueue(std::uint64_t seed) : random_(seed) {}

  std::uint64_t now() const { return now_; }
  bool empty() const { return events_.empty(); }
  std::uint64_t handled() const { return handled_; }

  /// Returns a number from `least` to `most`.
  std::uint64_t draw(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  /// Calls `act` at this time. Events of one time happen in the order in which they were added.
  void add(std::uint64_t time, std::function<void()> act) {
    events_.push({time, added_++, std::move(act)});
  }
  /// Calls `act` after a delay from `least` to `most`.
  void after(std::uint64_t least, std::uint64_t most, std::function<void()> act) {
    add(now_ + draw(least, most), std::move(act));
  }
  void run_next() {
    ++handled_;
    now_ = events_.top().time;
    const auto act = events_.top().act;
    events_.pop();
    act();
  }

 private:
  struct Event {
    std::uint64_t time;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::pair(other.time, other.number) < std::pair(time, number);
    }
  };

  std::mt19937_64 random_;
  std::priority_queue<Event> events_;
  std::uint64_t now_ = 0;
  std::uint64_t added_ = 0;
  std::uint64_t handled_ = 0;
};

}  // namespace weft::testing
