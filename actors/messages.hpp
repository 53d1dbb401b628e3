#pragma once
/// The messages between trainer, worker and device actors, and their typed interfaces. All are
/// small: tensors never travel here. Bump the number in a registered name when its fields change:
/// CAF compares nothing else.

#include <cstdint>
#include <memory>
#include <string>

#include <caf/fwd.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <weft/actors/protocol.hpp>

namespace weft {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, JoinRequest& x) {
  return f(caf::meta::type_name("weft::join/1"), x.worker, x.pid, x.token);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Assignment& x) {
  return f(caf::meta::type_name("weft::assignment/3"), x.mesh_shape, x.axis_names, x.num_workers,
           x.chips_per_worker, x.timeout_ms, x.seed, x.run_dir, x.recovers, x.keeps_state,
           x.check_replicas_every);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ProgramSeen& x) {
  return f(caf::meta::type_name("weft::program/2"), x.worker, x.generation, x.sequence, x.run,
           x.fingerprint_low, x.fingerprint_high, x.text);
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
typename Inspector::result_type inspect(Inspector& f, Start& x) {
  return f(caf::meta::type_name("weft::start/2"), x.generation, x.step, x.reports, x.checkpoint);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, LoopEnded& x) {
  return f(caf::meta::type_name("weft::ended/3"), x.worker, x.generation, x.step, x.runs, x.error,
           x.message, x.preempted);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ProcessEnded& x) {
  return f(caf::meta::type_name("weft::process/2"), x.worker, x.signal, x.exit_code,
           x.out_of_memory);
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
using ended_a = caf::atom_constant<caf::atom("ended")>;
using peer_ended_a = caf::atom_constant<caf::atom("peerended")>;
using started_a = caf::atom_constant<caf::atom("started")>;
using deadline_a = caf::atom_constant<caf::atom("deadline")>;
using lost_a = caf::atom_constant<caf::atom("lost")>;
using process_a = caf::atom_constant<caf::atom("process")>;
using cancel_a = caf::atom_constant<caf::atom("cancel")>;
using unwind_a = caf::atom_constant<caf::atom("unwind")>;
using unwound_a = caf::atom_constant<caf::atom("unwound")>;
using restart_a = caf::atom_constant<caf::atom("restart")>;
using tick_a = caf::atom_constant<caf::atom("tick")>;
using preempt_a = caf::atom_constant<caf::atom("preempt")>;
using pause_a = caf::atom_constant<caf::atom("pause")>;
using paused_a = caf::atom_constant<caf::atom("paused")>;
using end_at_a = caf::atom_constant<caf::atom("endat")>;
using grace_a = caf::atom_constant<caf::atom("grace")>;
using stop_a = caf::atom_constant<caf::atom("stop")>;
using load_a = caf::atom_constant<caf::atom("load")>;
using run_a = caf::atom_constant<caf::atom("run")>;
using call_a = caf::atom_constant<caf::atom("call")>;

using WorkerActor = caf::typed_actor<
    caf::reacts_to<start_a, Start>,                         // all are there
    caf::reacts_to<asked_a, std::uint32_t, std::uint64_t>,  // another's new program: sequence, run
    caf::reacts_to<admit_a, std::uint32_t>,                 // programs below this sequence number
                                                            // may run
    caf::reacts_to<grant_a, std::uint64_t>,                 // steps below this one may run
    caf::reacts_to<peer_ended_a, std::int32_t, std::uint64_t>,  // whose loop, after how many runs
    caf::reacts_to<pause_a>,                                    // no further step may begin
    caf::reacts_to<end_at_a, std::uint64_t>,  // the step from which on loops are told to end
    caf::reacts_to<unwind_a, std::string>,    // a worker is lost: who and how
    caf::reacts_to<cancel_a, std::string>,    // the job has failed: why
    caf::reacts_to<stop_a>>;                  // the job is over

using TrainerActor =
    caf::typed_actor<caf::replies_to<join_a, JoinRequest, WorkerActor>::with<Assignment>,
                     caf::reacts_to<program_a, ProgramSeen>,
                     caf::reacts_to<lease_a, std::uint64_t>,  // the step a worker wants to begin
                     caf::reacts_to<report_a, Report>, caf::reacts_to<hashes_a, StateHashes>,
                     caf::reacts_to<ended_a, LoopEnded>,
                     caf::reacts_to<unwound_a, std::int32_t, std::uint64_t>,  // from a generation
                     // A worker, its generation, and the first step that it doesn't begin.
                     caf::reacts_to<paused_a, std::int32_t, std::uint64_t, std::uint64_t>,
                     caf::reacts_to<preempt_a, std::string>,  // who has been asked to end, and how
                     // From its own process only.
                     caf::reacts_to<grace_a>,  // the time to end is over
                     caf::reacts_to<started_a, std::int32_t, std::int32_t>,  // worker, pid
                     caf::reacts_to<process_a, ProcessEnded>,
                     caf::reacts_to<deadline_a, std::uint64_t>,  // to gather, in a generation
                     caf::reacts_to<tick_a>,                     // time to look for hangs
                     caf::reacts_to<restart_a, std::int32_t>,    // a worker's process is due
                     caf::reacts_to<lost_a, std::int32_t>,  // a worker's link broke, a while ago
                     caf::reacts_to<cancel_a, std::uint8_t, std::string>>;  // an Errc, why

struct DeviceLoad;
struct DeviceRun;
struct DeviceCall;
/// Between a worker and its devices: one process, so plans and offsets go by pointer.
using DeviceLoadPtr = std::shared_ptr<const DeviceLoad>;
using DeviceRunPtr = std::shared_ptr<const DeviceRun>;
using DeviceCallPtr = std::shared_ptr<const DeviceCall>;
using DeviceActor =
    caf::typed_actor<caf::reacts_to<load_a, DeviceLoadPtr>, caf::reacts_to<run_a, DeviceRunPtr>,
                     caf::reacts_to<call_a, DeviceCallPtr>>;

}  // namespace weft

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceLoadPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceRunPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceCallPtr)
