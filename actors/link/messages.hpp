#pragma once
/// The messages between trainer, worker and device actors, and their typed interfaces. All are
/// small: tensors never travel here. Bump the number in a registered name when its fields change:
/// CAF compares nothing else.

#include <cstdint>
#include <string>

#include <caf/fwd.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "actors/protocol/protocol.hpp"

namespace weft {

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
typename Inspector::result_type inspect(Inspector& f, Assignment& x) {
  return f(caf::meta::type_name("weft::assignment/4"), x.mesh_shape, x.axis_names, x.num_workers,
           x.chips_per_worker, x.timeout_ms, x.seed, x.run_dir, x.recovers, x.keeps_state,
           x.check_replicas_every, x.loop, x.loop_config);
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
  return f(caf::meta::type_name("weft::data/1"), x.worker, x.generation, x.step, x.run, x.tensors,
           x.hashes);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Start& x) {
  return f(caf::meta::type_name("weft::start/3"), x.generation, x.step, x.reports, x.checkpoint,
           x.asks);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, LoopEnded& x) {
  return f(caf::meta::type_name("weft::ended/4"), x.worker, x.generation, x.step, x.runs, x.error,
           x.message, x.preempted, x.left, x.last);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ProcessEnded& x) {
  return f(caf::meta::type_name("weft::process/3"), x.worker, x.pid, x.signal, x.exit_code,
           x.out_of_memory, x.status_taken);
}

using join_a = caf::atom_constant<caf::atom("join")>;
using start_a = caf::atom_constant<caf::atom("start")>;
using program_a = caf::atom_constant<caf::atom("program")>;
using asked_a = caf::atom_constant<caf::atom("asked")>;
using admit_a = caf::atom_constant<caf::atom("admit")>;
using lease_a = caf::atom_constant<caf::atom("lease")>;
using grant_a = caf::atom_constant<caf::atom("grant")>;
using report_a = caf::atom_constant<caf::atom("report")>;
using hashes_a = caf::atom_constant<caf::atom("hashes")>;
using data_a = caf::atom_constant<caf::atom("data")>;
using ended_a = caf::atom_constant<caf::atom("ended")>;
using peer_ended_a = caf::atom_constant<caf::atom("peerended")>;
using started_a = caf::atom_constant<caf::atom("started")>;
using deadline_a = caf::atom_constant<caf::atom("deadline")>;
using link_grace_a = caf::atom_constant<caf::atom("linkgrace")>;
using process_a = caf::atom_constant<caf::atom("process")>;
using cancel_a = caf::atom_constant<caf::atom("cancel")>;
using unwind_a = caf::atom_constant<caf::atom("unwind")>;
using unwound_a = caf::atom_constant<caf::atom("unwound")>;
using restart_a = caf::atom_constant<caf::atom("restart")>;
using tick_a = caf::atom_constant<caf::atom("tick")>;
using asks_a = caf::atom_constant<caf::atom("asks")>;
using preempt_a = caf::atom_constant<caf::atom("preempt")>;
using pause_a = caf::atom_constant<caf::atom("pause")>;
using paused_a = caf::atom_constant<caf::atom("paused")>;
using end_at_a = caf::atom_constant<caf::atom("endat")>;
using grace_a = caf::atom_constant<caf::atom("grace")>;
using stop_a = caf::atom_constant<caf::atom("stop")>;

using WorkerActor = caf::typed_actor<
    caf::reacts_to<start_a, Start>,                         // all workers have joined
    caf::reacts_to<asked_a, std::uint32_t, std::uint64_t>,  // another's new program: sequence, run
    caf::reacts_to<admit_a, std::uint32_t>,                 // programs below this number may run
    caf::reacts_to<grant_a, std::uint64_t>,                 // steps below this one may run
    // The worker whose loop ended, its number of runs, and the site of the last run.
    caf::reacts_to<peer_ended_a, std::int32_t, std::uint64_t, std::string>,
    caf::reacts_to<pause_a>,                  // no further step may begin
    caf::reacts_to<end_at_a, std::uint64_t>,  // the step from which on loops are told to end
    caf::reacts_to<unwind_a, std::string>,    // a worker is lost: who and how
    caf::reacts_to<cancel_a, std::string>,    // the job has failed: why
    caf::reacts_to<stop_a>>;                  // the job is over

using TrainerActor =
    caf::typed_actor<caf::replies_to<join_a, JoinRequest, WorkerActor>::with<Assignment>,
                     caf::reacts_to<program_a, ProgramSeen>,
                     caf::reacts_to<lease_a, std::uint64_t>,  // the step a worker wants to begin
                     caf::reacts_to<report_a, Report>, caf::reacts_to<hashes_a, StateHashes>,
                     caf::reacts_to<data_a, DataHashes>, caf::reacts_to<ended_a, LoopEnded>,
                     caf::reacts_to<unwound_a, std::int32_t, std::uint64_t>,  // from a generation
                     // A worker, its generation, and the first step that it doesn't begin.
                     caf::reacts_to<paused_a, std::int32_t, std::uint64_t, std::uint64_t>,
                     caf::reacts_to<asks_a>,  // a loop has asked whether it is to end
                     caf::reacts_to<preempt_a, std::string>,  // who has been asked to end, and how
                     // From its own process only.
                     caf::reacts_to<grace_a>,  // the time to end is over
                     caf::reacts_to<started_a, std::int32_t, std::int32_t>,  // worker, pid
                     caf::reacts_to<process_a, ProcessEnded>,
                     caf::reacts_to<deadline_a, std::uint64_t>,  // to gather, in a generation
                     caf::reacts_to<tick_a>,                     // time to look for hangs
                     caf::reacts_to<restart_a, std::int32_t>,    // a worker's process is due
                     // The time between the ends of a worker's link and process: which worker,
                     // which time.
                     caf::reacts_to<link_grace_a, std::int32_t, std::uint64_t>,
                     caf::reacts_to<cancel_a, std::uint8_t, std::string>>;  // an Errc, why

}  // namespace weft
