#pragma once
/// Checks the options of an actor system and of its meshes, and makes their errors.

#include <cstddef>
#include <cstdint>
#include <string>

#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

class SystemHosts;

/// Returns the options with defaults filled in. Throws invalid_argument for invalid options.
SystemOptions checked(SystemOptions options);

/// Throws invalid_argument for options that no system accepts.
void require_valid(const detail::ActorClass& type, const SpawnOptions& options);

/// Throws invalid_argument if processes of actors can't be started from this program.
void require_worker_main(const detail::ActorClass& type, const SpawnOptions& options);

/// Throws invalid_argument if the system has no such host, and unavailable if it has lost the host.
/// `hosts` is null in a system on one host.
void require_host(const SpawnOptions& options, const std::string& mesh, const SystemHosts* hosts);

// The following functions return errors of spawn() and stop().
Error failed_before_error(const Error& failure);
Error name_taken_error(const std::string& mesh);
Error no_mesh_error(const std::string& mesh);
Error stopped_error(const std::string& mesh);
/// Returns the error of a process that can't have `needed` more actors with their own threads.
/// `process` is a text such as "this process".
Error no_ports_error(const std::string& mesh, const std::string& process, std::uint32_t needed,
                     std::uint32_t free);
/// `process` is a text such as "3 (pid 4711)", and `why` a text such as "was killed by SIGKILL".
Error process_ended_error(bool mesh_was_ready, const std::string& mesh, const std::string& process,
                          std::size_t first_actor, std::size_t last_actor, const std::string& why);
/// `host` is a text such as "host 1 (node2)".
Error host_lost_error(bool mesh_was_ready, const std::string& mesh, const std::string& host,
                      std::size_t first_actor, std::size_t last_actor, const std::string& why);
/// Returns the error with which a mesh ends when its job has ended.
Error job_ended_error(const std::string& mesh, const std::string& job);
Error not_joined_error(const std::string& mesh, const std::string& job, double timeout_s);
/// Return why the keeper kills a process: because an actor in it has failed
/// (ActorRestart::process), or because of hang_timeout_s.
std::string failed_actor_text(const Error& error);
std::string hang_text(const std::string& actor, double hang_timeout_s);

/// Returns the name of the mesh.
const std::string& mesh_name(const detail::ActorClass& type, const SpawnOptions& options);

/// Returns SpawnOptions::config as text. Throws invalid_argument if that is impossible.
std::string config_text(const std::string& mesh, const nlohmann::json& config);

/// Logs an error of a keeper at most once a minute, because errors such as the lack of file
/// descriptors may come often.
void log_once_a_minute(const std::string& system, const std::string& error);

}  // namespace weft
