#pragma once
/// The typed interfaces of the actors of several processes, and the names of their messages.

#include <cstdint>
#include <string>

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "actors/commands/messages.hpp"
#include "actors/protocol/messages.hpp"

namespace weft {

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
using part_a = caf::atom_constant<caf::atom("part")>;
using join_parts_a = caf::atom_constant<caf::atom("joinparts")>;
using drop_parts_a = caf::atom_constant<caf::atom("dropparts")>;
using saved_a = caf::atom_constant<caf::atom("saved")>;
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

template <class... Message>
using On = caf::reacts_to<Message...>;
using WorkerActor =
    caf::typed_actor<On<start_a, Start>,                         // all workers have joined
                     On<asked_a, std::uint32_t, std::uint64_t>,  // another worker's sequence, run
                     On<admit_a, std::uint32_t>,  // programs below this number may run
                     On<grant_a, std::uint64_t>,  // steps below this one may run
                     On<peer_ended_a, std::int32_t, std::uint64_t, std::string>,  // see LoopEnded
                     On<join_parts_a, std::uint64_t, std::uint64_t>,  // generation, save
                     On<drop_parts_a, std::uint64_t, std::uint64_t>,  // generation, save
                     On<saved_a, SaveEnded>, On<pause_a>,             // no further step may begin
                     On<end_at_a, std::uint64_t>,  // the step from which on loops are told to end
                     On<hold_a>,                   // no further step may begin until let_go
                     On<let_go_a, CommandList>,    // further commands; held loops go on
                     On<read_a, ReadElsewhere>,    // another worker's loop has read a command
                     On<unwind_a, std::string>,    // a worker is lost: which one and how
                     On<cancel_a, std::string>, On<stop_a>>;  // cancel: why the job has failed

using TrainerActor = caf::typed_actor<
    caf::replies_to<join_a, JoinRequest, WorkerActor>::with<Assignment>, On<program_a, ProgramSeen>,
    On<lease_a, std::uint64_t>,  // the step a worker wants to begin
    On<report_a, Report>, On<hashes_a, StateHashes>, On<data_a, DataHashes>,
    On<part_a, PartWritten>, On<saved_a, SaveEnded>, On<ended_a, LoopEnded>,
    On<unwound_a, std::int32_t, std::uint64_t>,                // worker, generation
    On<paused_a, std::int32_t, std::uint64_t, std::uint64_t>,  // worker, generation, step not begun
    On<held_a, std::int32_t, std::uint64_t, std::uint64_t>,    // as of paused_a
    On<read_a, CommandsRead>, On<waits_a, CommandsAwaited>,    // by the worker's loop
    On<post_a, CommandPost>,                                   // from the trainer's process
    On<asks_a>,                  // a loop has asked whether it is to end
    On<preempt_a, std::string>,  // why the job is to end
    On<grace_a>,  // the grace is over; this and the next messages come from the trainer's process
    On<started_a, std::int32_t, std::int32_t>,                   // worker, pid
    On<process_a, ProcessEnded>, On<deadline_a, std::uint64_t>,  // the time to gather is over
    On<tick_a>,                                                  // time to look for hangs
    On<restart_a, std::int32_t>,                                 // the worker to start again
    On<link_grace_a, std::int32_t, std::uint64_t>,  // worker, number of the ended LinkGrace
    On<cancel_a, std::uint8_t, std::string>>;       // an Errc, why

}  // namespace weft
