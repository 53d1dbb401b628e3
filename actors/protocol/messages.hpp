#pragma once
/// The fields of the messages of protocol.hpp, for CAF. If the fields of a message change,
/// increment the number in its name, because CAF compares only the names.

#include <caf/meta/type_name.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"

namespace weft {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, StoredCommand& x) {
  return f(caf::meta::type_name("weft::command/1"), x.number, x.step, x.name, x.payload, x.is_read);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, JoinRequest& x) {
  return f(caf::meta::type_name("weft::join/1"), x.worker, x.pid, x.token);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, LoopIdentity& x) {
  return f(caf::meta::type_name("weft::loop/1"), x.name, x.site, x.object, x.build, x.type,
           x.offset, x.config_digest);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CheckpointConfig& x) {
  return f(caf::meta::type_name("weft::checkpoints/1"), x.path, x.save_interval, x.max_to_keep,
           x.keep_every, x.best_by, x.best_mode, x.on_preemption);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Assignment& x) {
  return f(caf::meta::type_name("weft::assignment/7"), x.mesh_shape, x.axis_names, x.device_ids,
           x.device, x.num_workers, x.chips_per_worker, x.timeout_ms, x.seed, x.run_dir, x.recovers,
           x.keeps_state, x.check_replicas_every, x.is_eager, x.checkpoint, x.resume_partial,
           x.loop, x.loop_config);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ProgramSeen& x) {
  return f(caf::meta::type_name("weft::program/3"), x.worker, x.generation, x.sequence, x.run,
           x.fingerprint_low, x.fingerprint_high, x.text, x.site);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Report& x) {
  return f(caf::meta::type_name("weft::report/2"), x.worker, x.generation, x.step, x.number,
           x.metrics, x.checkpoint);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, StateHashes& x) {
  return f(caf::meta::type_name("weft::hashes/1"), x.worker, x.generation, x.step, x.num_tensors,
           x.tensors, x.pieces, x.hashes);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, DataHashes& x) {
  return f(caf::meta::type_name("weft::data/2"), x.worker, x.generation, x.step, x.run,
           x.num_states, x.tensors, x.hashes);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PartWritten& x) {
  return f(caf::meta::type_name("weft::part/1"), x.worker, x.generation, x.save, x.step, x.error,
           x.message);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SaveEnded& x) {
  return f(caf::meta::type_name("weft::saved/1"), x.generation, x.save, x.step, x.path, x.error,
           x.message);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Start& x) {
  return f(caf::meta::type_name("weft::start/6"), x.generation, x.step, x.reports, x.checkpoint,
           x.resume, x.saved_step, x.asks, x.commands, x.commands_read);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, LoopEnded& x) {
  return f(caf::meta::type_name("weft::ended/6"), x.worker, x.generation, x.step, x.runs, x.error,
           x.message, x.preempted, x.left, x.last, x.thrown_at, x.returned);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ProcessEnded& x) {
  return f(caf::meta::type_name("weft::process/3"), x.worker, x.pid, x.signal, x.exit_code,
           x.out_of_memory, x.status_taken);
}

}  // namespace weft
