#pragma once
/// The main function of a process that an actor system has started for its actors, and its
/// variables.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/lanes/lane_ids.hpp"

namespace weft {

/// The values that the keeper passes to the process in the environment variable WEFT_ACTORS.
struct ChildVariables {
  std::string system{};
  PeerId peer{};
  std::uint32_t port_count = 0;
};
std::vector<std::string> to_variables(const ChildVariables& variables);

/// Returns the values in the environment; nothing if this process doesn't belong to an actor
/// system. Removes the variable, so that this process's children don't belong to the system. Throws
/// invalid_argument for a malformed value.
std::optional<ChildVariables> take_child_variables();

/// Joins the system and runs the actors that the keeper places in this process. Returns when they
/// have ended.
void run_child_process(const ChildVariables& variables);

}  // namespace weft
