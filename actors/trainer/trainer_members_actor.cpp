// The part of the trainer's actor that handles members: workers, and the agents of hosts.

#include <chrono>
#include <cstdlib>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "actors/link/watched_actor.hpp"
#include "actors/process/log.hpp"
#include "actors/trainer/trainer_state_actor.hpp"
#include "spmd/base/same_secret.hpp"

namespace weft::trainer_actor {
namespace {

/// The interval at which the trainer tells the agents that it lives.
constexpr std::chrono::seconds kBeatInterval{1};

/// Returns how another host's program differs from this host's program; nothing if both are equal.
std::optional<std::string> difference(const HostJoin& there, const TrainerLinkOptions& here) {
  const LoopIdentity& loop = here.assignment.loop;
  const auto differs = [&](const char* field, const auto& theirs, const auto& ours) {
    return fmt::format(
        "host {} ({}): {} = \"{}\", but host 0 has \"{}\": start the same program with the same "
        "options on all hosts",
        there.host, there.where.machine, field, theirs, ours);
  };
  if (there.loop.build != loop.build) return differs("build", there.loop.build, loop.build);
  if (there.loop.name != loop.name) return differs("loop name", there.loop.name, loop.name);
  if (there.loop.site != loop.site) {
    return differs("source line of the loop", there.loop.site, loop.site);
  }
  if (there.loop.config_digest != loop.config_digest) {
    return differs("digest of loop_config", there.loop.config_digest, loop.config_digest);
  }
  if (there.num_workers != here.spec.num_workers) {
    return differs("scaling.num_workers", there.num_workers, here.spec.num_workers);
  }
  if (there.chips_per_worker != here.spec.chips_per_worker) {
    return differs("chips per worker", there.chips_per_worker, here.spec.chips_per_worker);
  }
  const auto wire = [](bool is_ucx) { return to_string(is_ucx ? Wire::ucx : Wire::tls); };
  if (there.uses_ucx != here.spec.place.uses_ucx) {
    return differs("backend.wire", wire(there.uses_ucx), wire(here.spec.place.uses_ucx));
  }
  return {};
}

/// Drops a lost host from the job. If its processes still live, they can't take part any more.
void lose_host(Self self, int host, const std::string& why) {
  auto& state = state_of(self);
  const bool is_copied = state.hosts->has_whole_state();
  // Here the common step still includes the lost host, because if that host was empty, only its own
  // steps show that it has got the state.
  const std::uint64_t committed = state.hosts->common_step();
  state.hosts->lose(host, why);
  const int first = state.job->hosts().first_worker(host);
  std::string text = fmt::format("host {} is lost: {}", host, why);
  if (state.options.spec.recovery.recovers()) {
    text += fmt::format("; the job waits for another process with WEFT_HOST_INDEX = {}", host);
  }
  for (int i = 0; i < state.options.spec.workers_per_host(); ++i) {
    state.workers.drop(first + i, why);
    state.hosts->mark_lost(first + i, text);
  }
  carry_out(self, state.job->host_lost(host, why, is_copied, committed));
}

/// Returns why an agent may not take part again in a job in which it took part; nothing if it may.
std::optional<std::string> refuse_return(const HostJoin& join, const TrainerState& state) {
  if (join.job_id.empty()) return {};
  if (join.job_id != state.options.job_id) {
    return fmt::format("job {} is over", join.job_id);
  }
  if (!state.job->hosts().refuse(join.host, join.num_hosts)) return {};
  return fmt::format("host {} was taken for lost, and another process has its place", join.host);
}

HostEntry entry_of(const HostWhere& where) {
  return {.where = where,
          .via = via_of(where.machine, [](const char* name) { return std::getenv(name); })};
}

/// Writes the places of the hosts for `weft inspect`. If that fails, the job continues.
void write_places(TrainerState& state, const HostJoin& join) {
  std::vector<HostEntry>& hosts = state.places.hosts;
  try {
    if (hosts.empty()) {
      state.places.job = state.options.job_id;
      hosts.resize(static_cast<std::size_t>(join.num_hosts));
      hosts.front() = entry_of(where_this_is(state.options.job_id));
    }
    hosts.at(static_cast<std::size_t>(join.host)) = entry_of(join.where);
    state.places.write(state.options.assignment.run_dir);
  } catch (const std::exception& e) {
    logger("weft.trainer")->warn("weft inspect won't show host {}: {}", join.host, e.what());
  }
}

/// Returns why the agent has to wait, or nothing if it needn't. It waits while its place belongs to
/// a process that may be lost, which the trainer will soon notice.
std::optional<std::string> taken_for_now(const HostJoin& join, const TrainerState& state) {
  const JobState& job = *state.job;
  const bool may_be_lost = has_begun(job) && state.options.spec.recovery.recovers() && !job.over();
  if (!may_be_lost || !join.job_id.empty() || difference(join, state.options)) return {};
  if (join.num_hosts != state.options.spec.place.count || join.host < 1 ||
      join.host >= join.num_hosts) {
    return {};
  }
  return job.hosts().refuse(join.host, join.num_hosts);
}

void link_down(Self self, const caf::actor_addr& gone) {
  auto& state = state_of(self);
  if (const auto host = state.hosts->find(gone)) {
    return lose_host(self, *host, "the connection to its agent has ended");
  }
  const std::optional<int> lost = state.workers.remove(gone);
  if (!lost) return;
  const int worker = *lost;
  logger("weft.trainer")->info("lost the link to worker {}", worker);
  carry_out(self, state.job->link_down(worker));
}

/// From now on, calls link_down() when the actor of this worker or agent ends.
template <typename Member>
void watch_member(Self self, const Member& member) {
  watch(self, member, [self](const caf::actor_addr& gone) { link_down(self, gone); });
}

}  // namespace

bool has_begun(const JobState& job) {
  return job.phase() != JobPhase::gathering || job.generation() > 1;
}

caf::result<Assignment> join(Self self, const JoinRequest& request, const WorkerActor& worker) {
  auto& state = state_of(self);
  if (!same_secret(request.token, state.options.token)) {
    logger("weft.trainer")->warn("refused a join as worker {}: wrong token", request.worker);
    return caf::make_error(caf::sec::invalid_argument, std::string("wrong job token"));
  }
  auto refusal = state.job->refuse_join(request.worker, request.pid);
  if (!refusal && !state.hosts->is_own(request.worker) &&
      !state.job->hosts().holds(state.job->hosts().of(request.worker), request.memory_id)) {
    refusal = fmt::format("worker {} belongs to a host that was lost", request.worker);
  }
  if (refusal) {
    logger("weft.trainer")->warn("refused a join: {}", *refusal);
    return caf::make_error(caf::sec::invalid_argument, *refusal);
  }
  logger("weft.trainer")->info("worker {} (pid {}) joined", request.worker, request.pid);
  state.workers.add(request.worker, worker);
  watch_member(self, worker);
  state.hosts->committed(request.worker, request.committed);
  carry_out(self, state.job->joined(request.worker, request.pid, state.hosts->common_step()));
  return state.options.assignment;
}

caf::result<HostWelcome> join_host(Self self, const HostJoin& join, const AgentActor& agent) {
  auto& state = state_of(self);
  const FitCalls& calls = state.options.calls;
  if (join.fit_number != calls.number) return HostWelcome{.calls = calls};
  if (state.job->over() && join.job_id == state.options.job_id) {
    return HostWelcome{.calls = calls, .is_over = true};
  }
  // The agent may notice earlier than the trainer that their connection was cut.
  if (!join.job_id.empty() && state.job->hosts().holds(join.host, join.where.memory_id)) {
    lose_host(self, join.host, "its agent connects again");
  }
  if (const auto taken = taken_for_now(join, state)) {
    return HostWelcome{.calls = calls, .taken = *taken};
  }
  auto refusal = refuse_return(join, state);
  if (!refusal) refusal = state.job->hosts().refuse(join.host, join.num_hosts);
  if (!refusal) refusal = difference(join, state.options);
  if (refusal) {
    logger("weft.trainer")->warn("refused a host: {}", *refusal);
    if (!join.job_id.empty()) return caf::make_error(caf::sec::invalid_argument, *refusal);
    if (!has_begun(*state.job)) carry_out(self, state.job->cancel(Errc::mesh_mismatch, *refusal));
    return caf::make_error(caf::sec::invalid_argument, *refusal);
  }
  if (state.job->over()) return HostWelcome{.calls = calls, .is_over = true};
  logger("weft.trainer")
      ->info("host {} ({}, pid {}) joined", join.host, join.where.machine, join.pid);
  if (state.host_0.empty()) state.host_0 = join.trainer;
  write_places(state, join);
  state.job->host_joined({.host = join.host,
                          .memory_id = join.where.memory_id,
                          .machine = join.where.machine,
                          .was_here = !join.job_id.empty()});
  const bool has_state = !join.job_id.empty() && !state.job->hosts().is_empty(join.host);
  state.hosts->add(join.host, agent, has_state ? std::optional(join.committed) : std::nullopt);
  watch_member(self, agent);
  return HostWelcome{.calls = calls,
                     .job_id = state.options.job_id,
                     .token = state.options.token,
                     .fits = state.options.fits,
                     .assignment = state.options.assignment,
                     .storage = state.folders->kind(),
                     .offered = offer(self, join.host)};
}

bool may_tell_of(Self self, int worker) {
  const auto& state = state_of(self);
  if (worker < 0 || worker >= state.options.spec.num_joins()) return false;
  const auto host = state.hosts->host_of(self->current_sender());
  return host ? *host == state.job->hosts().of(worker) : state.hosts->is_own(worker);
}

void prepare(Self self, action::Prepare prepare) {
  auto& state = state_of(self);
  prepare.seed = state.options.assignment.seed;
  if (prepare.generation > 1 || prepare.step > 0) state.hosts->begin_generation(prepare.step);
  state.hosts->prepare(prepare);
}

void take_news(Self self, const HostNews& news) {
  auto& state = state_of(self);
  if (state.hosts->host_of(self->current_sender()) == news.host) state.hosts->take(news);
}

void host_prepared(Self self, int host, std::uint64_t number) {
  auto& state = state_of(self);
  if (state.hosts->host_of(self->current_sender()) != host) return;
  carry_out(self, state.job->prepared(host, number));
}

void unwound(Self self, int worker, std::uint64_t generation, std::uint64_t committed) {
  auto& state = state_of(self);
  if (generation == state.job->generation()) state.hosts->committed(worker, committed);
  carry_out(self, state.job->unwound(worker, generation, state.hosts->common_step()));
}

void beat(Self self) {
  auto& state = state_of(self);
  if (state.job->over()) return;
  send_later(self, kBeatInterval, beat_a_v);
  const auto longest = state.options.spec.host_timeout();
  for (const int host : state.hosts->beat(AllHosts::Clock::now(), longest)) {
    lose_host(self, host,
              fmt::format("it has been silent for run.failure.host_timeout_s = {}",
                          state.options.spec.host_timeout_s));
  }
}

void wire_lost(Self self, const WireLost& lost) {
  logger("weft.trainer")
      ->warn("worker {}: the connection of chip {} to chip {} has broken: {}", lost.worker,
             lost.chip, lost.peer, lost.why);
  carry_out(self, state_of(self).job->wire_lost(lost));
}

void wire_grace_over(Self self, std::uint64_t generation) {
  auto& state = state_of(self);
  carry_out(self, state.job->wire_grace_over(generation, state.hosts->common_step()));
}

void link_grace_over(Self self, int worker, std::uint64_t number) {
  auto& state = state_of(self);
  const Whereabouts where = state.hosts->locate(worker);
  carry_out(self, state.job->link_grace_over(worker, number, where, state.hosts->common_step()));
}

void cancel(Self self, Errc code, const std::string& reason) {
  auto& state = state_of(self);
  const auto host = state.hosts->host_of(self->current_sender());
  if (host && has_begun(*state.job) && code != Errc::cancelled &&
      state.options.spec.recovery.recovers()) {
    return lose_host(self, *host, reason);
  }
  carry_out(self, state.job->cancel(code, reason));
}

void say_donors(const Start& start) {
  for (std::size_t host = 0; host < start.donors.size(); ++host) {
    if (start.donors[host] < 0) continue;
    logger("weft.trainer")
        ->warn("host {} gets the state of step {} from host {}", host, start.step,
               start.donors[host]);
  }
}

void take_wires(Self self, const WireAddresses& addresses) {
  auto& state = state_of(self);
  if (const auto all = state.wires.add(addresses)) state.workers.tell(*all);
}

}  // namespace weft::trainer_actor
