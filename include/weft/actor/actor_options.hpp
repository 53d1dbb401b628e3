#pragma once
/// The options of an actor system and of its actors.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <weft/job/choice.hpp>

namespace weft {

class Job;

/// The processes in which the actors of a mesh run.
struct ActorPlace {
  int processes = 0;            ///< 0: in this process
  int host = -1;                ///< on which the processes run; -1: all hosts of the system
  const Job* beside = nullptr;  ///< not null: in the processes of this job's loops
};
inline ActorPlace this_process() { return {}; }
/// In `count` new processes of this executable, whose main() must call weft::worker_main() first.
/// Neighbours in the mesh share a process. In a system on several hosts, each host gets an equal
/// part of the processes, in the order of the hosts' numbers; `host` puts all of them on one.
inline ActorPlace processes(int count, int host = -1) { return {.processes = count, .host = host}; }
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

/// The hosts of an actor system. The same program is started on each of them, as for a job
/// (docs/clusters.md), and makes the system with the same options. The constructor returns on host
/// 0. On another host it runs the processes that host 0 places there, and ends the program with the
/// system. The program's jobs run on host 0 alone. Without WEFT_HOSTS and without a launcher the
/// system is on one host.
struct ActorHosts {
  /// The folder of the file by which the hosts find each other, which all of them must see, unless
  /// WEFT_TRAINER and WEFT_SECRET_FILE are set.
  std::string storage_path = "~/weft_runs";
  /// The network by which the hosts reach each other: the name of a device ("eth1") or addresses
  /// ("10.0.0.0/8"). "": that by which a host reaches host 0.
  std::string network{};
  /// The ports at which hosts listen until all are connected, such as "4711-4800". "": any.
  std::string ports{};
  double timeout_s = 300;     ///< seconds for all hosts to join
  double host_timeout_s = 5;  ///< seconds of silence after which a host is lost; 3 or more
};

struct SystemOptions {
  std::string name{};  ///< for logs and output; "": "actors"
  int threads = 2;  ///< of each process, for the actors that have no thread of their own; 1 to 16
  double call_timeout_s = 30;  ///< for CallOptions::timeout_s = 0
  std::uint64_t seed = 0;      ///< for ActorContext::seed()
  /// Address space for the tensors of messages that a process sends. Memory is taken when needed.
  std::size_t heap_bytes = std::size_t{8} << 30;
  std::optional<ActorHosts> hosts{};  ///< nothing: one host, whatever the environment says
};

}  // namespace weft
