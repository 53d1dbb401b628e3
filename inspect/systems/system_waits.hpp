#pragma once
/// Makes the graph of the waits between the actors and processes of an actor system.

#include <string>
#include <string_view>

#include "inspect/systems/system_snapshot.hpp"
#include "inspect/why/wait_graph.hpp"

namespace weft {

/// Returns the waits. Nodes are the actors by their rows; node_of_process() is the process itself
/// if it is stopped or gone, and else those of its threads that run no actor. The edges go
/// - from an actor that waits in get(), or else from the process of a caller, to the actor that has
///   to answer;
/// - from an actor that doesn't run to the actor that runs on their common thread;
/// - from an actor, or a process, that waits for room in a full pipe to the actor or process that
///   reads it, and from one that waits for a value of an empty pipe to the one that writes it;
/// - from an actor to its process if that can't continue by itself.
WaitGraph waits_of(const SystemSnapshot& system);

inline int node_of_process(const SystemSnapshot& system, std::uint32_t slot) {
  return static_cast<int>(system.actors.size() + slot);
}
/// Wait::on of a wait at a pipe.
inline constexpr std::string_view kPipeRoom = "room in its pipe";
inline constexpr std::string_view kPipeValue = "a value of its pipe";
inline bool is_at_pipe(const Wait& wait) { return wait.on == kPipeRoom || wait.on == kPipeValue; }

/// Returns "sieves[3]", "process 2" or "the program".
std::string name_of_node(const SystemSnapshot& system, int node);

/// Returns whether the process is gone, stopped, frozen, or held by a debugger.
bool is_frozen(const SystemSnapshot& system, const SystemProcess& process);

}  // namespace weft
