#include "actors/keeper/checks.hpp"

#include <chrono>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/launch/worker_entry.hpp"
#include "actors/process/log.hpp"
#include "actors/relay/system_hosts.hpp"
#include "actors/table/actor_table.hpp"
#include "actors/user/registry.hpp"
#include "data/files/plain_file.hpp"
#include "transport/lanes/lane_format.hpp"
#include "transport/wires/own_network.hpp"

namespace weft {

const std::string& mesh_name(const detail::ActorClass& type, const SpawnOptions& options) {
  return options.name.empty() ? type.name() : options.name;
}

namespace {

void require_valid(ActorHosts& hosts) {
  if (!(hosts.timeout_s > 0) || !(hosts.timeout_s < 1e9)) {
    fail(Errc::invalid_argument,
         "ActorHosts::timeout_s = {}: expected more than 0 and less than 1e9 seconds",
         hosts.timeout_s);
  }
  if (!(hosts.host_timeout_s >= 3) || !(hosts.host_timeout_s < 1e9)) {
    fail(Errc::invalid_argument,
         "ActorHosts::host_timeout_s = {}: expected 3 seconds or more, because hosts hear of each "
         "other once a second, and less than 1e9",
         hosts.host_timeout_s);
  }
  parse_ports(hosts.ports, "ActorHosts::ports");
  if (!hosts.network.empty()) own_addresses(hosts.network, "ActorHosts::network");
  hosts.storage_path = absolute_path(hosts.storage_path, "ActorHosts::storage_path");
}

}  // namespace

SystemOptions checked(SystemOptions options) {
  if (options.name.empty()) options.name = "actors";
  if (!is_actor_name(options.name)) {
    fail(Errc::invalid_argument,
         "SystemOptions::name = \"{}\": expected 1 to {} of the characters a-z A-Z 0-9 _ . -",
         options.name, kActorNameMax);
  }
  if (options.threads < 1 || options.threads > 16) {
    fail(Errc::invalid_argument, "SystemOptions::threads = {}: expected 1 to 16", options.threads);
  }
  if (!(options.call_timeout_s > 0)) {
    fail(Errc::invalid_argument, "SystemOptions::call_timeout_s = {}: expected more than 0",
         options.call_timeout_s);
  }
  if (options.hosts) require_valid(*options.hosts);
  return options;
}

void require_valid(const detail::ActorClass& type, const SpawnOptions& options) {
  require_usable(type);
  const std::string& name = mesh_name(type, options);
  if (!is_actor_name(name)) {
    fail(Errc::invalid_argument,
         "SpawnOptions::name = \"{}\": expected 1 to {} of the characters a-z A-Z 0-9 _ . -", name,
         kActorNameMax);
  }
  const int processes = options.place.processes;
  if (options.count < 1 || options.count > static_cast<int>(kActorCountMax)) {
    fail(Errc::invalid_argument, "mesh \"{}\": SpawnOptions::count = {}: expected 1 to {}", name,
         options.count, kActorCountMax);
  }
  if (processes < 0 || processes > options.count || processes >= static_cast<int>(kPeerCountMax)) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": processes({}) for {} actors: expected 1 to {} processes, and at least one "
         "actor for each",
         name, processes, options.count, kPeerCountMax - 1);
  }
  const int per_process =
      processes == 0 ? options.count : (options.count + processes - 1) / processes;
  if (options.place.beside != nullptr && processes > 0) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": SpawnOptions::place = {} processes, and beside a job's loops: expected one "
         "of weft::processes(n) and weft::beside_loops(job)",
         name, processes);
  }
  if (options.own_thread && options.place.beside == nullptr &&
      per_process > static_cast<int>(kPortCountMax) - 1) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": {} actors of a process with own_thread = true: expected at most {}; use "
         "more processes, or shared threads",
         name, per_process, kPortCountMax - 1);
  }
  if (options.place.host >= 0 && processes == 0) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": SpawnOptions::place names host {} without processes: use "
         "weft::processes(n, {})",
         name, options.place.host, options.place.host);
  }
  config_text(name, options.config);
  const Supervision& supervision = options.supervision;
  if (supervision.max_restarts < -1 || !(supervision.within_s >= 0) ||
      !(supervision.backoff_s >= 0) || !(supervision.hang_timeout_s >= 0)) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": Supervision{{max_restarts = {}, within_s = {}, backoff_s = {}, "
         "hang_timeout_s = {}}}: expected max_restarts of -1 or more, and seconds of 0 or more",
         name, supervision.max_restarts, supervision.within_s, supervision.backoff_s,
         supervision.hang_timeout_s);
  }
  if (supervision.hang_timeout_s > 0 && processes == 0) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": hang_timeout_s = {} for actors {}: use .place = weft::processes(n)", name,
         supervision.hang_timeout_s,
         options.place.beside == nullptr ? "of this process, which can't be killed"
                                         : "beside loops, whose processes the job supervises");
  }
  if (supervision.restart == ActorRestart::process && processes == 0) {
    fail(
        Errc::invalid_argument,
        "mesh \"{}\": restart = process for actors {}: use .place = weft::processes(n), or another "
        "Supervision::restart",
        name,
        options.place.beside == nullptr ? "of this process, which can't be started again"
                                        : "beside loops, whose processes the job starts again");
  }
}

void require_worker_main(const detail::ActorClass& type, const SpawnOptions& options) {
  const int processes = options.place.processes;
  if (processes > 0 && !called_worker_main()) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": processes({}): a process of actors would run this program's main(), which "
         "doesn't call weft::worker_main(): add `weft::worker_main(argc, argv);` as its first line",
         mesh_name(type, options), processes);
  }
}

void require_host(const SpawnOptions& options, const std::string& mesh, const SystemHosts* hosts) {
  const int host = options.place.host;
  const int count = hosts == nullptr ? 1 : hosts->count();
  if (host < -1 || host >= count) {
    fail(
        Errc::invalid_argument,
        "mesh \"{}\": processes({}, {}): the system has {} hosts, so expected a host from 0 to {}, "
        "or -1 for all; SystemOptions::hosts and WEFT_HOSTS say how many there are",
        mesh, options.place.processes, host, count, count - 1);
  }
  if (host > 0 && !hosts->is_up(host)) {
    fail(Errc::unavailable, "mesh \"{}\": processes({}, {}): {} is lost; name another host, or -1",
         mesh, options.place.processes, host, hosts->name(host));
  }
}

Error failed_before_error(const Error& failure) {
  return {Errc::actor_failed, fmt::format("the actor system has failed: {}", failure.what())};
}

Error name_taken_error(const std::string& mesh) {
  return {Errc::invalid_argument,
          fmt::format("the system has a mesh \"{}\" already: give SpawnOptions::name another "
                      "value, or stop that mesh first",
                      mesh)};
}

Error no_mesh_error(const std::string& mesh) {
  return {Errc::not_found, fmt::format("stop: there is no mesh \"{}\"", mesh)};
}

Error stopped_error(const std::string& mesh) {
  return {Errc::cancelled, fmt::format("mesh \"{}\" was stopped", mesh)};
}

Error no_ports_error(const std::string& mesh, const std::string& process, std::uint32_t needed,
                     std::uint32_t free) {
  return {Errc::no_space,
          fmt::format("mesh \"{}\": own_thread = true needs {} more threads in {}, which has room "
                      "for {}; use .place = weft::processes(n), or shared threads",
                      mesh, needed, process, free)};
}

Error process_ended_error(bool mesh_was_ready, const std::string& mesh, const std::string& process,
                          std::size_t first_actor, std::size_t last_actor, const std::string& why) {
  return {mesh_was_ready ? Errc::actor_failed : Errc::unavailable,
          fmt::format("mesh \"{}\": process {} of actors {} to {} {}", mesh, process, first_actor,
                      last_actor, why)};
}

Error host_lost_error(bool mesh_was_ready, const std::string& mesh, const std::string& host,
                      std::size_t first_actor, std::size_t last_actor, const std::string& why) {
  return {mesh_was_ready ? Errc::actor_failed : Errc::unavailable,
          fmt::format("mesh \"{}\": {} with the processes of actors {} to {} is lost: {}", mesh,
                      host, first_actor, last_actor, why)};
}

Error job_ended_error(const std::string& mesh, const std::string& job) {
  return {Errc::cancelled,
          fmt::format("mesh \"{}\" was stopped because its job {} has ended", mesh, job)};
}

Error not_joined_error(const std::string& mesh, const std::string& job, double timeout_s) {
  return {
      Errc::unavailable,
      fmt::format("mesh \"{}\": not all workers of job {} have joined the actor system and made "
                  "their actors within {} s; the job's log says what its workers do",
                  mesh, job, timeout_s)};
}

std::string failed_actor_text(const Error& error) {
  return fmt::format("was ended, because one of them has failed: {}", error.what());
}

std::string hang_text(const std::string& actor, double hang_timeout_s) {
  return fmt::format("was killed because {} was in one function for more than {} s", actor,
                     hang_timeout_s);
}

std::string config_text(const std::string& mesh, const nlohmann::json& config) {
  try {
    return config.is_null() ? "{}" : config.dump();
  } catch (const nlohmann::json::exception& error) {
    fail(Errc::invalid_argument,
         "mesh \"{}\": SpawnOptions::config can't become JSON text: {}; give bytes that aren't "
         "UTF-8 "
         "in another form, such as hex digits",
         mesh, error.what());
  }
}

void log_once_a_minute(const std::string& system, const std::string& error) {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point next{};
  if (Clock::now() < next) return;
  next = Clock::now() + std::chrono::minutes(1);
  logger("weft.trainer")->error("actor system {}: {}", system, error);
}

}  // namespace weft
