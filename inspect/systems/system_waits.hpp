#pragma once
/// SystemWaits: makes the graph of the waits between the actors and processes of an actor system.

#include <string>
#include <string_view>

#include "inspect/systems/system_snapshot.hpp"
#include "inspect/why/wait_graph.hpp"
#include "transport/lanes/lane_format.hpp"

namespace weft {

/// Returns the waits. The nodes are the actors, by their rows, the processes, by node_of_process(),
/// and the jobs, by node_of_job(). The node of a process that is stopped or gone stands for the
/// process, and otherwise for its threads that run no actor. The edges go
/// - from an actor that waits in get(), or the process of another caller, to the actor that has
///   to answer;
/// - from an actor that doesn't run to the actor that runs on their common thread;
/// - from the actor or process that waits for room in a full pipe to the actor or process that
///   reads the pipe, and from one that waits for a value of an empty pipe to its writer;
/// - from an actor that waits for room for rows, or for a version, to the job;
/// - from a job whose loop waits for rows to the actors that live with it, in the processes that
///   write the rows, or to such a process if it has none of these actors;
/// - from an actor to its process, if the process can't continue by itself.
WaitGraph waits_of(const SystemSnapshot& system);

inline int node_of_process(const SystemSnapshot& system, std::uint32_t slot) {
  return static_cast<int>(system.actors.size() + slot);
}
inline int node_of_job(const SystemSnapshot& system, std::size_t job) {
  return node_of_process(system, kPeerCountMax) + static_cast<int>(job);
}
/// The values of Wait::on for waits at pipes, and the beginning of those for rows.
inline constexpr std::string_view kPipeRoom = "room in its pipe";
inline constexpr std::string_view kPipeValue = "a value of its pipe";
inline constexpr std::string_view kRows = "rows of ";
inline bool is_at_pipe(const Wait& wait) { return wait.on == kPipeRoom || wait.on == kPipeValue; }
/// Returns whether an actor that runs the same function all the time may serve such waits. Their
/// Wait::since_s says how long they have lasted.
bool is_stream(const SystemSnapshot& system, const Wait& wait);

/// Returns "sieves[3]", "process 2", "the program" or "job walk".
std::string name_of_node(const SystemSnapshot& system, int node);

/// Returns whether the process is gone, stopped, frozen, or held by a debugger.
bool is_frozen(const SystemSnapshot& system, const SystemProcess& process);

}  // namespace weft
