#pragma once
/// The state of the trainer's actor, and the functions that its parts share.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <caf/all.hpp>

#include "actors/commands/command_desk.hpp"
#include "actors/link/messages.hpp"
#include "actors/protocol/sighting.hpp"
#include "actors/supervision/hang_watch.hpp"
#include "actors/supervision/job_state.hpp"
#include "actors/supervision/replica_check.hpp"
#include "actors/trainer/all_hosts_actor.hpp"
#include "actors/trainer/trainer_link.hpp"
#include "actors/trainer/wire_book.hpp"
#include "actors/trainer/worker_group_actor.hpp"
#include "inspect/hosts/host_list.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft::trainer_actor {

struct TrainerState {
  std::optional<JobState> job;
  TrainerLinkOptions options;
  std::optional<AllHosts> hosts;
  Recorder recorder;
  WorkerGroup workers;
  std::map<int, std::string> last_metrics;  ///< by worker: the metrics of its last report
  std::optional<HangWatch> hangs;  ///< absent if the job doesn't treat hangs of workers as losses
  std::uint64_t messages = 0;      ///< the number of messages received
  std::size_t losses_told = 0;     ///< the number of survived losses that were reported
  std::uint64_t saved_told = 0;    ///< the step of the last complete checkpoint that was reported
  WireBook wires;                  ///< chip addresses of this generation
  std::string host_0;              ///< the address at which the first agent has reached this host
  std::optional<ReplicaCheck> replicas;
  std::optional<CommandDesk> desk;
  std::optional<std::uint64_t> begun;  ///< the last step that a loop of an earlier generation began
  HostList places;                     ///< places of the hosts that have joined
  std::optional<HostFolders> folders;  ///< the hosts' folders of checkpoints
  std::map<int, std::vector<OfferedCheckpoint>> offered;  ///< to each host, as it joined
  const char* name = "weft.trainer";
};

using Self = TrainerActor::stateful_pointer<TrainerState>;

void carry_out(Self self, const Actions& actions);

// The next functions are defined in trainer_commands_actor.cpp.
void carry_out(Self self, const DeskActions& actions);
/// Adds the commands that the loops of the generation must know to `start`.
void add_commands(Self self, Start& start);
/// Tells the command desk that the loops of this generation are being left.
void unwind_commands(Self self);
/// At the end of the job, answers the posters whose commands weren't read.
void end_commands(Self self);

// The next functions are defined in trainer_storage_actor.cpp.
JobTerms terms_of(const TrainerLinkOptions& options);
/// Returns the checkpoints that a joining host is offered, from which the job may continue.
std::vector<OfferedCheckpoint> offer(Self self, int host);
caf::result<bool> take_folder(Self self, const HostFolder& folder, const AgentActor& agent);
/// Adds to `start` what the loops need in addition to the decisions of JobState.
void complete(Self self, Start& start);
void save_ended(Self self, const SaveEnded& ended);
/// Reports each complete checkpoint once, even if it is written again after a loss.
void tell_whole_checkpoint(Self self);

// The next functions are defined in trainer_members_actor.cpp.
caf::result<Assignment> join(Self self, const JoinRequest& request, const WorkerActor& worker);
/// Returns whether loops of the job have begun or are about to begin.
bool has_begun(const JobState& job);
/// Handles the first message of an agent. If the agent's program differs from this host's program,
/// the job fails before its loops begin.
caf::result<HostWelcome> join_host(Self self, const HostJoin& join, const AgentActor& agent);
/// Returns whether the sender of the current message may report on the worker's process: a sender
/// in the trainer's process may, and so may the agent of the worker's host.
bool may_tell_of(Self self, int worker);
/// Clears the memory of all hosts for the next generation. No worker may use the memory meanwhile.
void prepare(Self self, action::Prepare prepare);
void host_prepared(Self self, int host, std::uint64_t number);
void take_news(Self self, const HostNews& news);
void unwound(Self self, int worker, std::uint64_t generation, std::uint64_t committed);
void take_wires(Self self, const WireAddresses& addresses);
void wire_lost(Self self, const WireLost& lost);
void wire_grace_over(Self self, std::uint64_t generation);
void link_grace_over(Self self, int worker, std::uint64_t number);
/// Ends the job as its owner or an agent asks. But if the loops have begun and the job survives
/// losses, an agent that fails counts as a lost host.
void cancel(Self self, Errc code, const std::string& reason);
/// Logs which hosts get the state from which other hosts.
void say_donors(const Start& start);
/// Tells the agents that the trainer lives, and handles silent hosts: now, and then once a second.
void beat(Self self);

// The next functions are defined in trainer_hangs_actor.cpp.
/// Returns where a worker is and what its process is doing.
Sighting sight(Self self, int worker);
std::vector<Sighting> sightings_of_unwinding(Self self);
/// Returns the worker for which this worker waits, according to the board.
std::optional<Missing> awaited_by(Self self, int worker);
/// Looks for hangs: now, and then every HangWatch::kPeriod.
void look_for_hangs(Self self);
void begin_to_look_for_hangs(Self self);

}  // namespace weft::trainer_actor
