#include "actors/agent/agent_run.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "actors/agent/agent_link.hpp"
#include "actors/agent/calls_of_host_0.hpp"
#include "actors/agent/host_news.hpp"
#include "actors/host/checkpoint_place.hpp"
#include "actors/host/host_run.hpp"
#include "actors/host/left_for_rescue.hpp"
#include "actors/process/log.hpp"
#include "actors/process/signal_hub.hpp"
#include "actors/process/wake_queue.hpp"
#include "data/remote/storages.hpp"
#include "inspect/hosts/host_list.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The time between two HostNews.
constexpr std::chrono::seconds kNewsInterval{1};
/// The time in which processes must end: first after a job that ended well, then after a failed
/// one.
constexpr std::chrono::seconds kEndPatience{10};
constexpr std::chrono::seconds kFailedEndPatience{1};
/// The time for which an agent that was cut off from its trainer tries to join again.
constexpr std::chrono::seconds kReturnPatience{60};
/// The longest time of one such try to join again.
constexpr std::chrono::seconds kTryPatience{2};
/// The interval at which an agent looks for the mark of host 0 in a network file system.
constexpr std::chrono::milliseconds kMarkInterval{200};
/// Two SIGTERMs within this time count as one request.
constexpr std::chrono::seconds kSameRequest{2};

HostJoin join_of(const AgentJob& job, const HostWhere& where) {
  return {.host = job.spec.place.index,
          .num_hosts = job.spec.place.count,
          .pid = ::getpid(),
          .num_workers = job.spec.num_workers,
          .chips_per_worker = job.spec.chips_per_worker,
          .fit_number = job.fit_number,
          .loop = job.loop,
          .uses_ucx = job.spec.place.uses_ucx,
          .trainer = parse_tls_address(job.spec.place.trainer, "WEFT_TRAINER").host,
          .where = where};
}

class AgentRun {
 public:
  /// `link` is null while the agent is cut off from its trainer.
  AgentRun(const AgentJob& job, const HostJoin& join, const HostWelcome& welcome,
           std::unique_ptr<AgentLink>& link, WakeQueue<AgentEvent>& events)
      : job_(job),
        join_(join),
        spec_(job.spec),
        signals_(job.handles_signals ? std::make_unique<SignalSubscription>(job.chains_signals)
                                     : nullptr),
        link_(link),
        events_(events),
        welcome_(welcome),
        host_(spec_, {}, job.logs_to_console,
              JoinedJob{.part = {.job = {.id = welcome_.job_id, .token = welcome_.token},
                                 .memory_id = join_.where.memory_id},
                        .run_dir = welcome_.assignment.run_dir}) {
    logger("weft.trainer")
        ->info("host {} takes part in job {} of host 0", spec_.place.index, welcome_.job_id);
  }
  ~AgentRun() { host_.processes.clear(); }

  /// Returns whether the job ended well; nothing if this host has left the job before its end.
  std::optional<bool> run() {
    find_storage();
    if (!welcome_.fits.empty()) std::ofstream(host_.place.folder() + "/fits") << welcome_.fits;
    start_all();
    while (!over()) turn();
    if (!ended_well_ && leaves_) {
      leave_for_rescue(host_, storage_.path(), is_trainer_dead_);
    }
    if (!is_stopped_) return {};
    logger("weft.trainer")
        ->info("host {} waits for the next fit() of host 0, or for its end", spec_.place.index);
    return ended_well_;
  }

 private:
  bool over() const { return has_ended_ && host_.processes.over(); }

  /// Finds out where this host stores checkpoints, and tells the trainer before any worker joins.
  void find_storage() {
    if (welcome_.storage == HostStorage::none) return;
    const HostFolder found = storage_.find(welcome_, [this] {
      tell_news();  // so that the trainer doesn't take this host for silent
      std::this_thread::sleep_for(kMarkInterval);
    });
    has_copies_ = !found.is_shared && !is_remote(found.path);
    link_->tell_folder(found);
  }

  void start_all() {
    for (int i = 0; i < spec_.workers_per_host(); ++i) start(spec_.first_worker() + i);
  }

  void start(int worker) {
    const int pid = host_.start_process(worker, job_.command, job_.loop, link_->address());
    link_->process_started(worker, pid);
  }

  /// Waits for the next event, and handles all events that have come.
  void turn() {
    std::vector<pollfd> waits;
    for (const int fd : {events_.fd(), signals_ ? signals_->fd() : -1}) {
      waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
    const std::size_t first = waits.size();
    host_.processes.add_to(waits);
    if (::poll(waits.data(), waits.size(), milliseconds_left()) < 0 && errno != EINTR) {
      fail(Errc::io, "can't watch the workers: poll: {}", std::strerror(errno));
    }
    host_.processes.serve(&waits[first], [this](const ProcessEnded& ended) {
      if (link_ == nullptr) return;
      tell_news();  // includes the last commits of the worker
      link_->process_ended(ended);
    });
    while (const int signal = signals_ ? signals_->take() : 0) interrupted(signal);
    while (const auto event = events_.pop()) handle(*event);
    const Clock::time_point now = Clock::now();
    if (now - std::exchange(last_turn_, now) > kStandstill) heard_ = now;
    if (!has_ended_ && link_ != nullptr && now - heard_ > spec_.agent_patience()) {
      cut_off(fmt::format("the trainer of host 0 has been silent for {:.1f} s",
                          std::chrono::duration<double>(now - heard_).count()));
    }
    if (now >= next_news_) {
      if (link_ == nullptr) {
        if (!has_ended_) come_back(now);
      } else {
        tell_news();
      }
    }
    if (kill_at_ && now >= *kill_at_) {
      host_.processes.kill_all();
      host_.processes.drop_output();
      kill_at_.reset();
    }
    host_.times.on_time(now);
  }

  int milliseconds_left() const {
    Clock::time_point next = std::min(next_news_, host_.times.deadline());
    if (const auto due = host_.processes.deadline()) next = std::min(next, *due);
    if (kill_at_) next = std::min(next, *kill_at_);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    return static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count());
  }

  void handle(const AgentEvent& event) {
    std::visit(
        Overloaded{
            [&](const action::Launch& launch) {
              if (!has_ended_) start(launch.worker);
            },
            [&](const action::Kill& kill) { host_.processes.kill(kill.worker, kill.dumps_stack); },
            [&](const action::Prepare& prepare) { this->prepare(prepare); },
            [&](const agent_event::Abort& abort) {
              if (abort.generation == generation_) host_.link.abort(abort.why);
            },
            [&](const agent_event::MarkLost& lost) { host_.link.mark_lost(lost.worker, {}); },
            [&](const agent_event::SetStatus& set) {
              ended_well_ = set.status == JobStatus::succeeded;
              host_.link.set_status(set.status);
            },
            [&](const agent_event::RemoveArenaNames&) { host_.link.remove_arena_names(); },
            [&](const agent_event::Stop&) { stop(); },
            [&](const agent_event::Beat&) { heard_ = Clock::now(); },
            [&](const agent_event::HangRecord& hang) {
              if (hang.is_kept) return host_.hangs.record_part();
              host_.hangs.forget_part();
            },
            [&](const agent_event::Dropped& dropped) {
              cut_off("the trainer of host 0 takes this host for lost: " + dropped.why);
            },
            [&](const agent_event::TrainerGone&) {
              cut_off("the connection to the trainer of host 0 has ended");
            },
        },
        event);
  }

  /// Kills the workers, because the trainer is lost to this host. The memory keeps their state, so
  /// that this host may join the job again.
  void cut_off(const std::string& why) {
    if (has_ended_ || link_ == nullptr) return;
    logger("weft.trainer")->error("{}: the workers of this host are killed", why);
    host_.link.abort(why);
    host_.processes.kill_all();
    link_.reset();
    while (events_.pop()) {  // orders of the old connection don't count any more
    }
    is_aborted_ = true;
    return_by_ = Clock::now() + kReturnPatience;
    next_news_ = Clock::now();
    if (!spec_.recovery.recovers()) give_up();
  }

  /// Tries to join the job again, after the killed workers have ended.
  void come_back(Clock::time_point now) {
    next_news_ = now + kTryInterval;
    if (!host_.processes.over()) {  // a killed process may stay in the kernel forever
      if (now >= return_by_) give_up();
      return;
    }
    try {
      auto link = AgentLink::connect_once(
          spec_.place, kTryPatience, [this](AgentEvent event) { events_.push(std::move(event)); });
      HostJoin join = join_;
      join.job_id = welcome_.job_id;
      join.committed = host_.link.common_step();
      const HostWelcome welcome = link->join(join);
      if (welcome.is_over || welcome.calls.number != join.fit_number) {
        leaves_ = false;
        return stop();
      }
      link_ = std::move(link);
    } catch (const Error& error) {
      const bool may_come = error.code() == Errc::io || error.code() == Errc::timeout ||
                            error.code() == Errc::peer_lost;
      if (may_come && Clock::now() < return_by_) return;
      // On any other error, the job continues without this host, or is over.
      is_trainer_dead_ = may_come || error.code() == Errc::unavailable;
      leaves_ = is_trainer_dead_;
      logger("weft.trainer")->error("this host can't take part again: {}", error.what());
      return give_up();
    }
    heard_ = Clock::now();
    logger("weft.trainer")
        ->warn("host {} takes part again, with the state of step {}", spec_.place.index,
               host_.link.common_step());
    start_all();
  }

  void give_up() {
    ended_well_ = false;
    end();
  }

  /// Ends this host's part, because the trainer has said that the job has ended.
  void stop() {
    is_stopped_ = !has_ended_;
    end();
  }

  void prepare(const action::Prepare& prepare) {
    if (prepare.generation > 1 || prepare.step > 0 || is_aborted_)
      host_.link.begin_generation(prepare.step);
    if (!std::exchange(has_card_, true)) write_card(prepare);
    generation_ = prepare.generation;
    is_aborted_ = false;
    host_.times.tell();
    link_->prepared(prepare.number);
  }

  /// Writes the run card, which tells `weft rescue` about this host's memory.
  void write_card(const action::Prepare& prepare) const {
    Assignment assignment = welcome_.assignment;
    assignment.seed = prepare.seed;
    assignment.checkpoint.path = storage_.path();
    write_run_card_of_host(host_, assignment, prepare.step, has_copies_);
  }

  /// Gives the workers time to end by themselves, which the trainer has told them to do.
  void end() {
    if (std::exchange(has_ended_, true)) return;
    kill_at_ = Clock::now() + (ended_well_ ? kEndPatience : kFailedEndPatience);
  }

  /// The first SIGTERM preempts the job, and any other first signal cancels it. But in a job that
  /// survives losses, SIGHUP makes this host leave, as if it were lost. A further signal kills this
  /// host's workers. A SIGTERM soon after the first one counts as the same request (see
  /// JobOutcome).
  void interrupted(int signal) {
    const std::string why = fmt::format("the agent of host {} (pid {}) got SIG{}",
                                        spec_.place.index, ::getpid(), ::sigabbrev_np(signal));
    const Clock::time_point now = Clock::now();
    if (signal == SIGTERM && first_term_ && now - *first_term_ < kSameRequest) return;
    logger("weft.trainer")->warn("{}", why);
    if (std::exchange(is_interrupted_, true)) {
      leaves_ = false;
      give_up();
      host_.processes.kill_all();
    } else if (signal == SIGHUP && spec_.recovery.recovers()) {
      leaves_ = false;
      cut_off("the program that started this host is gone");
      give_up();
    } else if (signal == SIGTERM) {
      first_term_ = now;
      if (link_ == nullptr) return give_up();
      link_->preempt(why);
    } else {
      if (link_ == nullptr) return give_up();
      link_->cancel(Errc::cancelled, why);
    }
  }

  void tell_news() {
    next_news_ = Clock::now() + kNewsInterval;
    link_->tell(news_of(host_, generation_));
  }

  const AgentJob& job_;
  const HostJoin& join_;
  const JobSpec& spec_;
  const std::unique_ptr<SignalSubscription> signals_;
  std::unique_ptr<AgentLink>& link_;
  WakeQueue<AgentEvent>& events_;
  const HostWelcome& welcome_;
  HostRun host_;
  CheckpointPlace storage_{spec_, welcome_.job_id};
  std::uint64_t generation_ = 1;  ///< the generation for which the memory is prepared
  bool is_aborted_ = false;       ///< the agent was cut off in this generation
  bool has_ended_ = false;
  bool is_stopped_ = false;  ///< the trainer has said that the job has ended
  bool ended_well_ = false;
  bool has_copies_ = false;       ///< this host stores its own copies of checkpoints
  bool has_card_ = false;         ///< the run card has been written
  bool is_trainer_dead_ = false;  ///< as far as this host can know
  bool leaves_ = true;            ///< the memory of a failed job may be left for a rescue
  Clock::time_point next_news_ = Clock::now();  ///< when to send news, or to try to join again
  Clock::time_point heard_ = Clock::now();      ///< when the trainer last gave a sign of life
  Clock::time_point last_turn_ = Clock::now();
  Clock::time_point return_by_{};
  std::optional<Clock::time_point> kill_at_;
  bool is_interrupted_ = false;
  std::optional<Clock::time_point> first_term_;
};

}  // namespace

AgentEnd run_agent(const AgentJob& given) {
  WakeQueue<AgentEvent> events;
  FitCalls calls;
  auto link = connect_for(given, calls, [&](AgentEvent event) { events.push(std::move(event)); });
  if (calls.number > given.fit_number) return {.outcome = outcome_on_host_0(calls, given)};
  JobSpec spec = given.spec;
  spec.place = link->place();
  const AgentJob job{.spec = spec,
                     .loop = given.loop,
                     .command = given.command,
                     .handles_signals = given.handles_signals,
                     .chains_signals = given.chains_signals,
                     .logs_to_console = given.logs_to_console,
                     .fit_number = given.fit_number};
  const HostJoin join = join_of(job, where_this_is(random_id()));
  const HostWelcome welcome = join_job(*link, join, job.spec.host_timeout());
  if (welcome.is_over) {
    logger("weft.trainer")
        ->error("host {} comes too late: the job of fit() #{} has ended on host 0",
                job.spec.place.index, job.fit_number);
    link.reset();
    return {.code = 1, .outcome = wait_for_next_job(job, calls.process)};
  }
  // From here on the trainer waits for this host, so it must be told of errors.
  const auto cancel = [&](Errc code, const char* why) {
    if (link != nullptr) link->cancel(code, fmt::format("host {}: {}", job.spec.place.index, why));
  };
  std::optional<bool> ended;
  try {
    ended = AgentRun(job, join, welcome, link, events).run();
  } catch (const Error& error) {
    cancel(error.code(), error.what());
    throw;
  } catch (const std::exception& error) {
    cancel(Errc::io, error.what());
    throw;
  }
  link.reset();
  if (!ended) return {.code = 1};
  return {.code = *ended ? 0 : 1, .outcome = wait_for_next_job(job, calls.process)};
}

}  // namespace weft
