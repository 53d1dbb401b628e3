#pragma once
/// HangWatch: finds workers that are alive and don't move while others wait for them. Pure: what
/// the board shows and the time come from outside.

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <weft/transport/board.hpp>

namespace weft {

class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HangWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  /// Workers that others wait for, by the board or for what is `awaited` of them by the trainer,
  /// and of which no row has changed for the timeout.
  std::vector<int> observe(std::span<const ActorRow> rows, std::span<const int> awaited, Time now);
  /// The workers begin anew.
  void forget() { seen_.clear(); }

 private:
  struct Seen {
    std::string rows;  ///< what they showed
    Time since{};
  };
  std::chrono::milliseconds timeout_;
  std::map<int, Seen> seen_;  // by worker
};

}  // namespace weft
