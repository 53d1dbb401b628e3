#pragma once
/// What the trainer can find out about a worker that is gone or doesn't come.

#include <cstdint>
#include <string>

namespace weft {

/// What the board says of a worker.
struct Whereabouts {
  std::uint64_t step = 0;
  std::string collective{};
};

/// The worker for which a wait that has timed out was waiting.
struct Missing {
  int worker = -1;
  std::string how{};  ///< "is stopped", or ""
};

/// What board and system say of a living worker.
struct Sighting {
  int worker = -1;
  Whereabouts where{};
  std::string process{};  ///< "sleeps in futex_wait"
};

}  // namespace weft
