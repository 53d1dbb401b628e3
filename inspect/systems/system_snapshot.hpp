#pragma once
/// SystemSnapshot: an actor system at one moment.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/process/process_state.hpp"
#include "inspect/snapshot/job_streams.hpp"
#include "transport/actors/actor_table_format.hpp"
#include "transport/lanes/lane_ids.hpp"

namespace weft {

/// A process that has a slot in the system's table of peers.
struct SystemProcess {
  PeerId peer{};
  PeerState state = PeerState::free;  ///< the state that the keeper has marked
  ProcessState process{};             ///< the state that /proc shows
  /// The pipe at which a thread that runs no actor waits. If several threads wait, this is one of
  /// the pipes.
  std::optional<AwaitedPipe> pipe{};
};

/// The messages from one process to one endpoint of an actor that nobody has begun.
struct OpenMessages {
  std::uint32_t from = 0;  ///< slot of the process
  std::uint32_t row = 0;
  std::uint32_t endpoint = 0;
  std::uint32_t count = 0;
  std::uint32_t awaited = 0;  ///< how many are calls for whose answers the process waits
};

/// A wait of an actor for what a job's loop does.
struct SystemJobWait {
  bool writes = false;  ///< true: for room for rows; false: for a version
  std::string job{};    ///< "" if there was no room for the names
  std::string name{};
  std::int64_t since_ns = 0;  ///< CLOCK_MONOTONIC
};

struct SystemActor {
  std::uint32_t mesh = 0;
  std::uint32_t index = 0;
  ActorPosition position{};
  std::int64_t since_ns = 0;  ///< CLOCK_MONOTONIC when the function began; 0: no function runs
  ActorFunction function{};   ///< the function that runs, or ran last
  std::uint64_t call = 0;     ///< the number of the function's message; 0: no message
  bool is_awaited = false;    ///< whether a call runs whose caller waits for the answer
  std::optional<AwaitedCall> awaits{};  ///< a call whose answer the actor waits for
  std::optional<AwaitedPipe> pipe{};    ///< a pipe at which the actor waits
  std::optional<SystemJobWait> job_wait{};
  std::uint64_t begun = 0;   ///< how many functions the actor has begun
  int tid = 0;               ///< thread that runs the actor; 0: unknown
  std::uint32_t unread = 0;  ///< messages for this actor that nobody has begun
  /// The largest number of messages that a single process has waiting at the actor's thread; at
  /// most kLaneEntryCount.
  std::uint32_t box = 0;

  bool runs() const { return since_ns != 0; }
  /// Returns whether the row has an actor. It has none if a smaller mesh has replaced a larger one.
  bool exists() const { return position.phase != ActorPhase::none; }
};

struct SystemMesh {
  std::string name{};
  std::string type{};
  std::uint32_t first_row = 0;
  std::uint32_t count = 0;
  std::vector<std::string> endpoints{};  ///< names of the first endpoints; the others are unknown
  bool own_thread = false;
  std::string restart{};  ///< "actor", "mesh", "process" or "none"
  std::string job{};      ///< the id of the job with which the mesh ends; "": none
  int max_restarts = 0;   ///< -1: no limit
  std::uint32_t restarts = 0;
  bool escalates = false;  ///< whether the system fails when this mesh fails
  bool has_ended = false;
  std::string cause{};  ///< the failure that ended the mesh; "": none
};

/// A wait of a loop for rows of an experience().
struct LoopRowWait {
  int worker = 0;
  std::string name{};  ///< the experience's name
  std::string rows{};  ///< "117 of 512 rows"
  double for_s = 0;    ///< how long it has waited for the next row
};

/// A job with which a mesh of the system ends.
struct SystemJob {
  std::string id{};
  std::string name{};   ///< "" if the job can't be read
  std::string state{};  ///< JobView::state; "gone": the job has no memory on this machine any more
  std::uint64_t step = 0;
  int trainer_pid = 0;
  JobStreams streams{};
  std::vector<LoopRowWait> waits{};

  const std::string& label() const { return name.empty() ? id : name; }
};

struct SystemSnapshot {
  std::string id{};
  std::string name{};
  std::int64_t started_unix_ns = 0;
  std::int64_t at_ns = 0;                  ///< CLOCK_MONOTONIC
  bool is_held = false;                    ///< whether the process that owns the system lives
  bool sees_processes = true;              ///< false: the processes are in another pid namespace
  std::vector<SystemProcess> processes{};  ///< by slot, without free slots
  std::vector<SystemMesh> meshes{};
  std::vector<SystemActor> actors{};  ///< by row
  std::vector<SystemJob> jobs{};      ///< jobs of meshes that haven't ended
  std::vector<OpenMessages> open{};
  std::vector<std::string> remarks{};  ///< parts that can't be read, and why

  const SystemProcess* process(std::uint32_t slot) const;
  int pid(std::uint32_t slot) const;  ///< the process's pid; 0: unknown
  /// Returns for how many seconds the actor's function has run.
  double for_s(const SystemActor& actor) const { return seconds_since(actor.since_ns); }
  /// Return how many seconds the wait has lasted.
  double wait_s(const AwaitedPipe& wait) const { return seconds_since(wait.since_ns); }
  double wait_s(const SystemJobWait& wait) const { return seconds_since(wait.since_ns); }
  double seconds_since(std::int64_t since_ns) const;
  std::size_t actor_count() const;                  ///< number of actors that haven't ended
  std::string actor_name(std::uint32_t row) const;  ///< "sieves[3]"
  /// Returns the name of an endpoint, or "endpoint 17" if the table doesn't have the name.
  std::string endpoint_name(std::uint32_t row, std::uint32_t endpoint) const;
  /// Returns the name of the function that the actor runs or ran last: "primes", "work",
  /// "constructor".
  std::string function_name(std::uint32_t row) const;
  /// Returns "room in a pipe that b[0] reads", "a value of a pipe that the program writes", or "a
  /// value of a pipe whose other end isn't used yet".
  std::string pipe_text(const AwaitedPipe& pipe) const;
  /// Returns 'room for rows in "steps"' or 'a version of "policy"'.
  static std::string job_wait_text(const SystemJobWait& wait);
  std::string user_name(const PipeUser& user) const;  ///< "b[0]" or "the program"
  /// Returns "the program" or "process 3".
  static std::string process_name(std::uint32_t slot);
  /// Returns "running", "stopped", "held" (in a debugger), "failed" or "dead".
  std::string state() const;
};

}  // namespace weft
