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

/// The place of a mesh: the processes in which its actors run.
struct ActorPlace {
  int processes = 0;            ///< 0: in this process
  int host = -1;                ///< the host of these processes; -1: all hosts of the system
  const Job* beside = nullptr;  ///< if set, the actors run in the processes of this job's loops
};
inline ActorPlace this_process() { return {}; }
/// Places a mesh in `count` new processes of this executable, whose main() must call
/// weft::worker_main() first. Neighbours in the mesh share a process. In a system on several hosts,
/// each host gets an equal part of the processes, in the order of the hosts' numbers; with `host`,
/// all processes are on that host.
inline ActorPlace processes(int count, int host = -1) { return {.processes = count, .host = host}; }
/// Places a mesh in the worker processes of a job that was started with TrainerOptions::actors, or
/// in this process if the job's loop runs here (num_workers = 0). Neighbours in the mesh share a
/// process. The mesh ends with the job. When a lost worker is replaced, its actors are made again
/// in the new process; this doesn't count as a restart of actors.
inline ActorPlace beside_loops(const Job& job) { return {.beside = &job}; }

/// Says which actors are made again after an actor has failed or its process has died.
enum class ActorRestart : std::uint8_t {
  actor,    ///< the failed actor; if its process died, all actors of that process
  mesh,     ///< all actors of the mesh
  process,  ///< all actors of the process, in a new process. Only for processes(n).
  /// No actor. Calls to the failed actor end with its error; the other actors continue.
  none,
};

/// Says what ends if an actor fails after `max_restarts` restarts.
enum class ActorGivesUp : std::uint8_t {
  escalate,  ///< the actor system fails with the actor's error
  stop,      ///< the actor's mesh ends; calls of it end with the actor's error
};

/// Says what the system does when an actor fails. An actor fails if its constructor, work() or the
/// endpoint of a tell() throws, if its process dies, or if one of its functions runs longer than
/// hang_timeout_s. An exception in a call() goes to the caller, and the actor lives.
struct Supervision {
  int max_restarts = 0;  ///< restarts in the mesh within `within_s`; -1: no limit
  double within_s = 0;   ///< seconds; 0: the whole life of the mesh
  /// Seconds before the first restart. The time doubles with each further restart, up to 30 s.
  double backoff_s = 0.1;
  /// Seconds that one run of an endpoint or of work() may take; 0: no limit. The process of an
  /// actor that takes longer is killed. Only for actors in processes(n).
  double hang_timeout_s = 0;
  Choice<ActorRestart> restart = ActorRestart::actor;
  Choice<ActorGivesUp> then = ActorGivesUp::escalate;
};

struct SpawnOptions {
  std::string name{};  ///< the name of the mesh; "": the name of the actor type
  int count = 1;       ///< the number of actors, at least 1
  ActorPlace place{};
  /// If true, each actor has its own thread. If false, the actors of a process share
  /// SystemOptions::threads threads, and may not block.
  bool own_thread = false;
  /// The job whose parameters and experience the actors use. When the job ends, the mesh is
  /// stopped, and its calls end with the error cancelled. If an actor of the mesh fails after
  /// `max_restarts` restarts, the job is cancelled. The Job needn't outlive spawn().
  const Job* lives_with = nullptr;
  Supervision supervision{};
  nlohmann::json config{};  ///< the value of ActorContext::config()
};

/// The hosts of an actor system. As for a job (docs/clusters.md), the same program is started on
/// each host. Each makes the system with the same options. On host 0, the system's constructor
/// returns. On another host, the constructor runs the processes that host 0 places there, and ends
/// the program when the system ends; so the program's jobs run on host 0 alone. Without WEFT_HOSTS
/// and without a launcher, the system is on one host.
struct ActorHosts {
  /// A folder that all hosts can access: a file in it tells them how to reach each other. It isn't
  /// used if WEFT_TRAINER and WEFT_SECRET_FILE are set.
  std::string storage_path = "~/weft_runs";
  /// The network between the hosts: the name of a device ("eth1") or addresses ("10.0.0.0/8"). "":
  /// the network through which each host reaches host 0.
  std::string network{};
  /// The ports at which hosts listen until all are connected, such as "4711-4800". "": any ports.
  std::string ports{};
  double timeout_s = 300;     ///< seconds within which all hosts must join
  double host_timeout_s = 5;  ///< seconds of silence after which a host is lost; 3 or more
};

struct SystemOptions {
  std::string name{};          ///< the name in logs and output; "": "actors"
  int threads = 2;             ///< threads per process, 1 to 16, for actors without an own_thread
  double call_timeout_s = 30;  ///< for calls whose CallOptions::timeout_s is 0
  std::uint64_t seed = 0;      ///< determines ActorContext::seed()
  /// The address space, in bytes, for tensors in messages that a process sends. Memory is taken
  /// only as tensors need it.
  std::size_t heap_bytes = std::size_t{8} << 30;
  std::optional<ActorHosts> hosts{};  ///< std::nullopt: one host, whatever the environment says
};

}  // namespace weft
