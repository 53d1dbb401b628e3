#pragma once
/// A process that an actor system has started for its actors.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/lanes/lane_ids.hpp"

namespace weft {

/// The values that the keeper gives the process in its environment, as WEFT_ACTORS.
struct ChildVariables {
  std::string system{};
  PeerId peer{};
  std::uint32_t port_count = 0;
};
std::vector<std::string> to_variables(const ChildVariables& variables);

/// Returns what the environment says; nothing if this process isn't one of an actor system. Then
/// removes it from the environment, so that the children of this process aren't either. Throws
/// invalid_argument for a malformed value.
std::optional<ChildVariables> take_child_variables();

/// Joins the system, runs the actors that the keeper places here, and returns once they have ended.
void run_child_process(const ChildVariables& variables);

}  // namespace weft
