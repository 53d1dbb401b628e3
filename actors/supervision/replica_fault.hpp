#pragma once
/// ReplicaFault: that workers don't have the same where they have to.

#include <cstdint>
#include <string>

#include <weft/error.hpp>

namespace weft {

/// Where they differ first.
struct ReplicaFault {
  std::uint64_t step = 0;
  int worker = -1;  ///< the only one that differs from the most; -1 where that can't be told
  std::string message{};
  Errc code = Errc::corrupt;
};

}  // namespace weft
