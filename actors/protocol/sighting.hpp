#pragma once
/// What the trainer can find out about a worker that is gone or doesn't arrive.

#include <compare>
#include <cstdint>
#include <string>

namespace weft {

/// A process of a worker. Processes of several hosts may have the same pid.
struct ProcessId {
  int worker = -1;
  int pid = 0;
  auto operator<=>(const ProcessId&) const = default;
};

/// Where a worker is, according to the board.
struct Whereabouts {
  std::uint64_t step = 0;
  std::string collective{};
};

/// The worker for which another worker waited until its wait timed out.
struct Missing {
  int worker = -1;
  std::string how{};  ///< "is stopped", or ""
};

/// What the board and the system show about a living worker.
struct Sighting {
  int worker = -1;
  Whereabouts where{};
  std::string process{};  ///< such as "sleeps in futex_wait"
};

}  // namespace weft
