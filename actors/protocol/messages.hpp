#pragma once
/// Lists the fields of the messages of protocol.hpp for CAF. If the fields of a message change,
/// increment the number in its name in link/messages.hpp, because CAF compares only the names.

#include "actors/caf/version.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"

namespace weft {

template <class Inspector>
auto inspect(Inspector& f, StoredCommand& x) {
  return inspect_fields(f, x, x.number, x.step, x.name, x.payload, x.is_read);
}
template <class Inspector>
auto inspect(Inspector& f, JoinRequest& x) {
  return inspect_fields(f, x, x.worker, x.pid, x.token, x.committed, x.memory_id);
}
template <class Inspector>
auto inspect(Inspector& f, LoopIdentity& x) {
  return inspect_fields(f, x, x.name, x.site, x.object, x.build, x.type, x.offset, x.config_digest);
}
template <class Inspector>
auto inspect(Inspector& f, CheckpointConfig& x) {
  return inspect_fields(f, x, x.path, x.save_interval, x.max_to_keep, x.keep_every, x.best_by,
                        x.best_mode, x.on_preemption);
}
template <class Inspector>
auto inspect(Inspector& f, Assignment& x) {
  return inspect_fields(f, x, x.mesh_shape, x.axis_names, x.device_ids, x.dcn_shape, x.device,
                        x.num_hosts, x.num_workers, x.chips_per_worker, x.timeout_ms, x.seed,
                        x.run_dir, x.recovers, x.keeps_state, x.check_replicas_every, x.is_eager,
                        x.checkpoint, x.resume_partial, x.loop, x.loop_config);
}
template <class Inspector>
auto inspect(Inspector& f, ProgramSeen& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.sequence, x.run, x.fingerprint_low,
                        x.fingerprint_high, x.text, x.site);
}
template <class Inspector>
auto inspect(Inspector& f, Report& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.step, x.number, x.metrics, x.checkpoint);
}
template <class Inspector>
auto inspect(Inspector& f, StateHashes& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.step, x.num_tensors, x.tensors, x.pieces,
                        x.hashes);
}
template <class Inspector>
auto inspect(Inspector& f, DataHashes& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.step, x.run, x.num_states, x.tensors,
                        x.hashes);
}
template <class Inspector>
auto inspect(Inspector& f, PartWritten& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.save, x.step, x.error, x.message);
}
template <class Inspector>
auto inspect(Inspector& f, SaveEnded& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.save, x.step, x.path, x.error, x.message);
}
template <class Inspector>
auto inspect(Inspector& f, Start& x) {
  return inspect_fields(f, x, x.generation, x.step, x.reports, x.checkpoint, x.resume, x.saved_step,
                        x.asks, x.commands, x.commands_read, x.donors, x.folders, x.copies, x.seed);
}
template <class Inspector>
auto inspect(Inspector& f, LoopEnded& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.step, x.runs, x.error, x.message,
                        x.preempted, x.left, x.last, x.thrown_at, x.returned);
}
template <class Inspector>
auto inspect(Inspector& f, ProcessEnded& x) {
  return inspect_fields(f, x, x.worker, x.pid, x.signal, x.exit_code, x.out_of_memory,
                        x.status_taken);
}

template <class Inspector>
auto inspect(Inspector& f, HostWhere& x) {
  return inspect_fields(f, x, x.machine, x.boot_id, x.pid_namespace, x.memory_id);
}
template <class Inspector>
auto inspect(Inspector& f, HostJoin& x) {
  return inspect_fields(f, x, x.job_id, x.committed, x.host, x.num_hosts, x.pid, x.num_workers,
                        x.chips_per_worker, x.fit_number, x.loop, x.uses_ucx, x.trainer, x.where);
}
template <class Inspector>
auto inspect(Inspector& f, FitCalls& x) {
  return inspect_fields(f, x, x.process, x.number, x.outcomes);
}
template <class Inspector>
auto inspect(Inspector& f, HostWelcome& x) {
  return inspect_fields(f, x, x.calls, x.taken, x.is_over, x.job_id, x.token, x.fits, x.assignment,
                        x.storage, x.offered);
}
template <class Inspector>
auto inspect(Inspector& f, OfferedCheckpoint& x) {
  return inspect_fields(f, x, x.step, x.id, x.path);
}
template <class Inspector>
auto inspect(Inspector& f, HostFolder& x) {
  return inspect_fields(f, x, x.host, x.machine, x.path, x.is_shared, x.newest, x.copies);
}
template <class Inspector>
auto inspect(Inspector& f, HostNews& x) {
  return inspect_fields(f, x, x.host, x.generation, x.committed, x.now_ns, x.row_numbers, x.rows,
                        x.processes);
}
template <class Inspector>
auto inspect(Inspector& f, HostProcess& x) {
  return inspect_fields(f, x, x.worker, x.core_time, x.doing);
}
template <class Inspector>
auto inspect(Inspector& f, WireAddresses& x) {
  return inspect_fields(f, x, x.generation, x.first_chip, x.addresses);
}
template <class Inspector>
auto inspect(Inspector& f, WireLost& x) {
  return inspect_fields(f, x, x.worker, x.generation, x.chip, x.peer, x.why);
}

}  // namespace weft
