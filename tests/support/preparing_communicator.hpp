#pragma once
/// A Communicator whose start() also prepares the call, for tests that make each call only once.

#include <array>
#include <optional>

#include "transport/collectives/communicator.hpp"

namespace weft::testing {

class PreparingCommunicator : public Communicator {
 public:
  using Communicator::Communicator;
  using Communicator::run;
  using Communicator::start;

  /// Prepares and starts the call. Keeps the previous prepared call too, because it may not have
  /// ended.
  void start(const CollectiveCall& call) {
    last_ = 1 - last_;
    start(kept_[last_].emplace(prepare(call)));
  }
  void run(const CollectiveCall& call) {
    start(call);
    wait();
  }

 private:
  std::array<std::optional<PreparedCall>, 2> kept_;
  std::size_t last_ = 0;
};

}  // namespace weft::testing
