#pragma once
/// The options of an actor system and of its actors.

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <weft/job/choice.hpp>

namespace weft {

class Job;

/// The processes in which the actors of a mesh run.
struct ActorPlace {
  int processes = 0;            ///< 0: in this process
  const Job* beside = nullptr;  ///< not null: in the processes of this job's loops
};
inline ActorPlace this_process() { return {}; }
/// In `count` new processes of this executable, whose main() must call weft::worker_main() first.
/// Neighbours in the mesh share a process.
inline ActorPlace processes(int count) { return {.processes = count}; }
/// In the worker processes of a job, which was started with TrainerOptions::actors; in this process
/// if its loop runs there (num_workers = 0). Neighbours in the mesh share a process. The mesh lives
/// with the job. The actors of a worker that was lost are made again in its successor, which counts
/// as no restart.
inline ActorPlace beside_loops(const Job& job) { return {.beside = &job}; }

/// The actors that are made again after one has failed, or its process has died.
enum class ActorRestart : std::uint8_t {
  actor,    ///< the actor; if its process has died, all actors of that process
  mesh,     ///< all actors of the mesh
  process,  ///< all actors of its process, in a new one. Only for actors in processes(n).
  /// None. Calls of an actor that has failed end with its error, and the rest of the mesh lives.
  none,
};

/// The consequence of a failure after which no actor is made again, because `max_restarts` is used
/// up.
enum class ActorGivesUp : std::uint8_t {
  escalate,  ///< the actor system fails with that error
  stop,      ///< its mesh ends, and calls of it end with that error
};

/// Says what is done about actors that fail. An actor fails if its constructor, work() or a message
/// that was told throws, if its process dies, or if one of its functions runs longer than
/// hang_timeout_s. An exception that a call throws goes to the caller, and the actor lives.
struct Supervision {
  int max_restarts = 0;  ///< of the mesh, within `within_s`; -1: no limit
  double within_s = 0;   ///< seconds; 0: as long as the mesh lives
  /// Seconds before the first restart. They double with each further one, up to 30 s.
  double backoff_s = 0.1;
  /// Seconds that an endpoint or a call of work() may take. 0: any time. A process whose actor
  /// takes longer is killed. Only for actors in processes(n).
  double hang_timeout_s = 0;
  Choice<ActorRestart> restart = ActorRestart::actor;
  Choice<ActorGivesUp> then = ActorGivesUp::escalate;
};

struct SpawnOptions {
  std::string name{};  ///< of the mesh; "": the type's name
  int count = 1;       ///< actors of the mesh, at least 1
  ActorPlace place{};
  /// Gives each actor a thread. Other actors of a process share SystemOptions::threads threads, and
  /// may not block.
  bool own_thread = false;
  /// The job whose parameters and experience the actors use. The mesh is stopped when the job ends;
  /// calls then end with the error cancelled. If an actor of the mesh fails when max_restarts are
  /// used up, the job is cancelled. spawn() copies what it needs of the Job.
  const Job* lives_with = nullptr;
  Supervision supervision{};
  nlohmann::json config{};  ///< for ActorContext::config()
};

struct SystemOptions {
  std::string name{};  ///< for logs and output; "": "actors"
  int threads = 2;  ///< of each process, for the actors that have no thread of their own; 1 to 16
  double call_timeout_s = 30;  ///< for CallOptions::timeout_s = 0
  std::uint64_t seed = 0;      ///< for ActorContext::seed()
  /// Address space for the tensors of messages that a process sends. Memory is taken when needed.
  std::size_t heap_bytes = std::size_t{8} << 30;
};

}  // namespace weft
