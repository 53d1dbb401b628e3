#pragma once
/// Describes workers that are gone or don't arrive, as far as the trainer can find out.

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

/// A worker's position in the program, according to the board.
struct Whereabouts {
  std::uint64_t step = 0;
  std::string collective{};
};

/// The worker for which another worker waited until its wait timed out.
struct Missing {
  int worker = -1;
  std::string how{};  ///< "is stopped", or ""
};

/// A living worker, as the board and the system show it.
struct Sighting {
  int worker = -1;
  Whereabouts where{};
  std::string process{};  ///< such as "sleeps in futex_wait"
};

}  // namespace weft
