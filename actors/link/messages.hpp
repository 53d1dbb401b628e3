#pragma once
/// The typed interfaces of actors that talk to other processes, and the names of their messages. If
/// the fields of a message change, increment the number in its name below, because CAF compares
/// only the names.

#include <cstdint>
#include <string>

#include "actors/caf/names.hpp"
#include "actors/commands/messages.hpp"
#include "actors/protocol/messages.hpp"

namespace weft {

using WorkerActor =
    caf::typed_actor<On<start_a, Start>,                         // all workers have joined
                     On<asked_a, std::uint32_t, std::uint64_t>,  // another worker's sequence, run
                     On<admit_a, std::uint32_t>,  // programs below this number may run
                     On<grant_a, std::uint64_t>,  // steps below this one may begin
                     On<peer_ended_a, std::int32_t, std::uint64_t, std::string>,  // see LoopEnded
                     On<join_parts_a, std::uint64_t, std::uint64_t>,  // generation, save
                     On<drop_parts_a, std::uint64_t, std::uint64_t>,  // generation, save
                     On<saved_a, SaveEnded>, On<pause_a>,             // no further step may begin
                     On<end_at_a, std::uint64_t>,  // loops are told to end at this step
                     On<hold_a>,                   // no step may begin until let_go
                     On<let_go_a, CommandList>,    // further commands; steps may begin again
                     On<wires_a, WireAddresses>,   // the addresses of all chips
                     On<read_a, ReadElsewhere>,    // another worker's loop has read a command
                     On<unwind_a, std::string>,    // why the generation is over
                     On<cancel_a, std::string>, On<stop_a>>;  // cancel: why the job has failed

/// The actor of an agent. It receives the trainer's orders to the agent's host.
using AgentActor =
    caf::typed_actor<On<launch_a, std::int32_t>,      // start this worker
                     On<kill_a, std::int32_t, bool>,  // kill this worker; does it write its stack?
                     // Generation, its first step, number to repeat in prepared_a, seed of the job.
                     On<prepare_a, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>,
                     On<abort_a, std::uint64_t, std::string>,  // the generation, and why it ends
                     On<lost_a, std::int32_t>,    // mark the rows of this worker as lost
                     On<status_a, std::uint8_t>,  // a JobStatus
                     On<unlink_a>,                // remove the names of the arenas
                     On<beat_a>,                  // the trainer lives
                     On<keep_a, bool>,            // true: the job hangs; false: it moves again
                     On<dropped_a, std::string>,  // why the trainer takes this host for lost
                     On<stop_a>>;                 // the job has ended

using TrainerActor = caf::typed_actor<
    Ask<HostWelcome, host_a, HostJoin, AgentActor>, Ask<bool, folder_a, HostFolder, AgentActor>,
    On<news_a, HostNews>,
    On<prepared_a, std::int32_t, std::uint64_t>,  // host, number of the Prepare
    Ask<Assignment, join_a, JoinRequest, WorkerActor>, On<program_a, ProgramSeen>,
    On<lease_a, std::uint64_t>,  // the step a worker wants to begin
    On<report_a, Report>, On<hashes_a, StateHashes>, On<data_a, DataHashes>,
    On<part_a, PartWritten>, On<saved_a, SaveEnded>, On<ended_a, LoopEnded>,
    On<unwound_a, std::int32_t, std::uint64_t, std::uint64_t>,  // worker, generation, committed
    On<wires_a, WireAddresses>,                                 // the addresses of a worker's chips
    On<wire_lost_a, WireLost>,
    On<paused_a, std::int32_t, std::uint64_t, std::uint64_t>,  // worker, generation, step not begun
    On<held_a, std::int32_t, std::uint64_t, std::uint64_t>,    // the same as for paused_a
    On<read_a, CommandsRead>, On<waits_a, CommandsAwaited>,    // sent by a worker's loop
    On<post_a, CommandPost>,                                   // sent by the trainer's process
    On<asks_a>,                  // a loop has asked whether it is to end
    On<preempt_a, std::string>,  // why the job is to end
    On<grace_a>,  // the grace is over; from here on, the trainer's process is the sender
    On<started_a, std::int32_t, std::int32_t>,                   // worker, pid
    On<process_a, ProcessEnded>, On<deadline_a, std::uint64_t>,  // the time to gather is over
    On<tick_a>,                                                  // time to look for hangs
    On<restart_a, std::int32_t>,                                 // the worker to start again
    On<link_grace_a, std::int32_t, std::uint64_t>,  // worker, number of the ended LinkGrace
    On<wire_grace_a, std::uint64_t>,                // the generation of the ended WireGrace
    On<beat_a>,                                     // time for the trainer's next sign of life
    On<keep_a, bool>,                               // true: the job hangs; false: it moves again
    On<cancel_a, std::uint8_t, std::string>>;       // an Errc, why

}  // namespace weft

/// Calls TYPE(block, type, name) for each type. `name` is the type's name in messages.
#define WEFT_LINK_MESSAGES(TYPE)                                  \
  TYPE(weft_messages, weft::JoinRequest, "weft::join/3")          \
  TYPE(weft_messages, weft::LoopIdentity, "weft::loop/1")         \
  TYPE(weft_messages, weft::Assignment, "weft::assignment/8")     \
  TYPE(weft_messages, weft::ProgramSeen, "weft::program/3")       \
  TYPE(weft_messages, weft::Report, "weft::report/2")             \
  TYPE(weft_messages, weft::Start, "weft::start/8")               \
  TYPE(weft_messages, weft::StoredCommand, "weft::command/1")     \
  TYPE(weft_messages, weft::CommandMark, "weft::mark/1")          \
  TYPE(weft_messages, weft::CommandList, "weft::commands/1")      \
  TYPE(weft_messages, weft::CommandsRead, "weft::read/1")         \
  TYPE(weft_messages, weft::CommandsAwaited, "weft::awaited/1")   \
  TYPE(weft_messages, weft::ReadElsewhere, "weft::elsewhere/1")   \
  TYPE(weft_messages, weft::CommandPost, "weft::post/1")          \
  TYPE(weft_messages, weft::LoopEnded, "weft::ended/6")           \
  TYPE(weft_messages, weft::ProcessEnded, "weft::process/3")      \
  TYPE(weft_messages, weft::WorkerActor, "weft::worker/8")        \
  TYPE(weft_messages, weft::StateHashes, "weft::hashes/1")        \
  TYPE(weft_messages, weft::PartWritten, "weft::part/1")          \
  TYPE(weft_messages, weft::SaveEnded, "weft::saved/2")           \
  TYPE(weft_messages, weft::DataHashes, "weft::data/2")           \
  TYPE(weft_messages, weft::TrainerActor, "weft::trainer/9")      \
  TYPE(weft_messages, weft::AgentActor, "weft::agent/4")          \
  TYPE(weft_messages, weft::HostJoin, "weft::host_join/4")        \
  TYPE(weft_messages, weft::HostWelcome, "weft::host/4")          \
  TYPE(weft_messages, weft::OfferedCheckpoint, "weft::offered/1") \
  TYPE(weft_messages, weft::HostFolder, "weft::host_folder/1")    \
  TYPE(weft_messages, weft::HostProcess, "weft::host_process/1")  \
  TYPE(weft_messages, weft::HostNews, "weft::host_news/1")        \
  TYPE(weft_messages, weft::WireAddresses, "weft::wires/1")       \
  TYPE(weft_messages, weft::WireLost, "weft::wire_lost/1")

CAF_BEGIN_TYPE_ID_BLOCK(weft_messages, caf::id_block::weft_names::end)
WEFT_LINK_MESSAGES(WEFT_CAF_TYPE)
CAF_END_TYPE_ID_BLOCK(weft_messages)
