#pragma once
/// Checks the options of an actor system and of its meshes, and words its errors.

#include <cstddef>
#include <cstdint>
#include <string>

#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

class SystemHosts;

/// Returns the options with defaults filled in. Throws invalid_argument.
SystemOptions checked(SystemOptions options);

/// Throws invalid_argument for options that can't be, whatever else the system has.
void require_valid(const detail::ActorClass& type, const SpawnOptions& options);

/// Throws invalid_argument if processes of actors can't be started from this program.
void require_worker_main(const detail::ActorClass& type, const SpawnOptions& options);

/// Throws invalid_argument or unavailable if the system has no such host, or has lost it. `hosts`
/// is null in a system on one host.
void require_host(const SpawnOptions& options, const std::string& mesh, const SystemHosts* hosts);

// The following are errors of spawn() and stop().
Error failed_before_error(const Error& failure);
Error name_taken_error(const std::string& mesh);
Error no_mesh_error(const std::string& mesh);
Error stopped_error(const std::string& mesh);
/// The process, such as "this process", can't have `needed` more actors with their own threads.
Error no_ports_error(const std::string& mesh, const std::string& process, std::uint32_t needed,
                     std::uint32_t free);
/// `process` is a text such as "3 (pid 4711)", and `why` one such as "was killed by SIGKILL".
Error process_ended_error(bool mesh_was_ready, const std::string& mesh, const std::string& process,
                          std::size_t first_actor, std::size_t last_actor, const std::string& why);
/// `host` is a text such as "host 1 (node2)".
Error host_lost_error(bool mesh_was_ready, const std::string& mesh, const std::string& host,
                      std::size_t first_actor, std::size_t last_actor, const std::string& why);
/// The cause of the end of a mesh whose job has ended.
Error job_ended_error(const std::string& mesh, const std::string& job);
Error not_joined_error(const std::string& mesh, const std::string& job, double timeout_s);
/// Returns `why` for a process that is killed because an actor of it has failed
/// (ActorRestart::process), and because of hang_timeout_s.
std::string failed_actor_text(const Error& error);
std::string hang_text(const std::string& actor, double hang_timeout_s);

/// Returns the name of the mesh.
const std::string& mesh_name(const detail::ActorClass& type, const SpawnOptions& options);

/// Returns SpawnOptions::config as text. Throws invalid_argument if that is impossible.
std::string config_text(const std::string& mesh, const nlohmann::json& config);

/// Logs an error of a keeper that may come again soon, such as the lack of file descriptors.
void log_once_a_minute(const std::string& system, const std::string& error);

}  // namespace weft
