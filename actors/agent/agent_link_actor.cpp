#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include <caf/all.hpp>

#include <weft/tensor/error.hpp>

#include "actors/agent/agent_link.hpp"
#include "actors/link/rendezvous.hpp"
#include "actors/link/system.hpp"
#include "actors/process/log.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The time between two tries to reach a trainer that doesn't listen yet.
constexpr std::chrono::milliseconds kRetryAfter{100};
/// The time after which a host says on the console that it still waits.
constexpr std::chrono::seconds kTellAfter{2};
/// The longest time to try one address of host 0, if the rendezvous file names several.
constexpr std::chrono::seconds kOneAddress{5};

/// Returns the trainer's text if it has refused, or all that CAF knows of the error.
std::string reason(const caf::error& error) {
  const auto& words = error.context();
  if (words.size() == 1 && words.match_element<std::string>(0)) return words.get_as<std::string>(0);
  return caf::to_string(error);
}

/// Returns the code of an error that ended a request to the trainer.
Errc code_of(const caf::error& error) {
  if (error == caf::sec::request_timeout) return Errc::timeout;
  return error == caf::sec::invalid_argument ? Errc::mesh_mismatch : Errc::peer_lost;
}

struct AgentState {
  AgentLink::OnEvent on_event;
  const char* name = "weft.agent";
};
using AgentSelf = AgentActor::stateful_pointer<AgentState>;

AgentActor::behavior_type agent_behavior(AgentSelf self, const TrainerActor& trainer,
                                         AgentLink::OnEvent on_event) {
  state_of(self).on_event = std::move(on_event);
  route_to_log(self, "weft.trainer");
  watch(self, trainer,
        [self](const caf::actor_addr&) { state_of(self).on_event(agent_event::TrainerGone{}); });
  const auto tell = [self](AgentEvent event) { state_of(self).on_event(std::move(event)); };
  return {
      [tell](launch_a, std::int32_t worker) { tell(action::Launch{.worker = worker}); },
      [tell](kill_a, std::int32_t worker, bool dumps_stack) {
        tell(action::Kill{.worker = worker, .dumps_stack = dumps_stack});
      },
      [tell](prepare_a, std::uint64_t generation, std::uint64_t step, std::uint64_t number,
             std::uint64_t seed) {
        tell(action::Prepare{
            .generation = generation, .step = step, .number = number, .seed = seed});
      },
      [tell](abort_a, std::uint64_t generation, const std::string& why) {
        tell(agent_event::Abort{.generation = generation, .why = why});
      },
      [tell](lost_a, std::int32_t worker) { tell(agent_event::MarkLost{worker}); },
      [tell](status_a, std::uint8_t status) {
        tell(agent_event::SetStatus{static_cast<JobStatus>(status)});
      },
      [tell](unlink_a) { tell(agent_event::RemoveArenaNames{}); },
      [tell](beat_a) { tell(agent_event::Beat{}); },
      [tell](keep_a, bool is_kept) { tell(agent_event::HangRecord{is_kept}); },
      [tell](dropped_a, const std::string& why) { tell(agent_event::Dropped{why}); },
      [tell](stop_a) { tell(agent_event::Stop{}); },
  };
}

class ActorAgentLink final : public AgentLink {
 public:
  /// `system` is connected with the trainer of `place`.
  ActorAgentLink(const HostPlace& place, std::chrono::milliseconds timeout,
                 std::unique_ptr<System> system, const TrainerActor& trainer,
                 const OnEvent& on_event)
      : timeout_(timeout),
        place_(place),
        address_("tls://" + place.trainer),
        system_(std::move(system)),
        trainer_(trainer),
        agent_(system_->caf().spawn([trainer, on_event](AgentSelf self) {
          return agent_behavior(self, trainer, on_event);
        })) {}
  ~ActorAgentLink() override { caf::anon_send_exit(agent_, caf::exit_reason::user_shutdown); }

  HostWelcome join(const HostJoin& request) override {
    return ask<HostWelcome>(host_a_v, request, agent_);
  }
  void tell_folder(const HostFolder& folder) override { ask<bool>(folder_a_v, folder, agent_); }
  const HostPlace& place() const override { return place_; }
  const std::string& address() const override { return address_; }
  void process_started(int worker, int pid) override {
    send(started_a_v, std::int32_t{worker}, std::int32_t{pid});
  }
  void process_ended(const ProcessEnded& ended) override { send(process_a_v, ended); }
  void tell(const HostNews& news) override { send(news_a_v, news); }
  void prepared(std::uint64_t number) override {
    send(prepared_a_v, std::int32_t{place_.index}, number);
  }
  void preempt(const std::string& why) override { send(preempt_a_v, why); }
  void cancel(Errc code, const std::string& why) override {
    send(cancel_a_v, static_cast<std::uint8_t>(code), why);
  }

 private:
  template <typename Answer, typename... Content>
  Answer ask(const Content&... content) {
    caf::scoped_actor self{system_->caf()};
    Answer answer{};
    request_by(self, trainer_, timeout_, content...)
        .receive([&](Answer& given) { answer = std::move(given); },
                 [&](const caf::error& error) {
                   fail(code_of(error), "host {} can't join the job: {}", place_.index,
                        reason(error));
                 });
    return answer;
  }
  template <typename... Content>
  void send(const Content&... content) {
    post_as(agent_, trainer_, content...);
  }

  const std::chrono::milliseconds timeout_;
  const HostPlace place_;
  const std::string address_;
  std::unique_ptr<System> system_;
  TrainerActor trainer_;
  AgentActor agent_;
};

bool may_come(Errc code) {
  return code == Errc::io || code == Errc::unavailable || code == Errc::timeout;
}

[[noreturn]] void late_for_meeting(const HostPlace& wanted, std::chrono::milliseconds timeout) {
  fail(Errc::timeout,
       "host {} ({}) has found no file {} in {} within backend.timeout_s = {}: host 0 writes it "
       "when its fit() begins. If this folder isn't on a file system that all hosts share, set "
       "run.storage_path to one that is, or set WEFT_TRAINER and WEFT_SECRET_FILE on all hosts; "
       "if host 0 has not started, its own output says why",
       wanted.index, machine_name(), rendezvous_name(wanted), wanted.meeting_folder,
       static_cast<double>(timeout.count()) / 1000);
}

/// Returns advice if WEFT_TRAINER is a loopback address, or else "".
std::string hint(const HostPlace& wanted) {
  if (wanted.trainer.empty()) return {};
  if (!is_loopback(parse_tls_address(wanted.trainer, "WEFT_TRAINER").host)) return {};
  return fmt::format(
      "; WEFT_TRAINER = \"{}\" is an address of this machine ({}) itself: if host 0 is another "
      "machine, give an address by which it is reached from here",
      wanted.trainer, machine_name());
}

}  // namespace

std::unique_ptr<AgentLink> AgentLink::connect_once(const HostPlace& place,
                                                   std::chrono::milliseconds timeout,
                                                   const OnEvent& on_event) {
  auto system = std::make_unique<System>();
  const TrainerActor trainer = system->dial(place, timeout);
  return std::make_unique<ActorAgentLink>(place, timeout, std::move(system), trainer, on_event);
}

/// Dials until the trainer answers, even after a refusal: the trainer may not listen yet, this host
/// may not reach the address, or the rendezvous file may be of an earlier run.
std::unique_ptr<AgentLink> AgentLink::connect(const HostPlace& wanted,
                                              std::chrono::milliseconds timeout,
                                              const OnEvent& on_event) {
  const auto deadline = Clock::now() + timeout;
  const auto late = Clock::now() + kTellAfter;
  const bool meets = !wanted.meeting.empty();
  bool told = !meets;
  std::string why;
  std::string remedy;
  while (Clock::now() < deadline) {
    if (!told && Clock::now() >= late) {
      told = true;
      logger("weft.trainer")
          ->warn("host {} waits for the file {} of host 0 in {}", wanted.index,
                 rendezvous_name(wanted), wanted.meeting_folder);
    }
    const std::vector<HostPlace> places =
        meets ? read_rendezvous(wanted) : std::vector<HostPlace>{wanted};
    for (const HostPlace& place : places) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (meets) left = std::min(left, std::chrono::milliseconds(kOneAddress));
      try {
        return connect_once(place, std::max(left, std::chrono::milliseconds(1)), on_event);
      } catch (const Error& error) {
        if (!may_come(error.code())) throw;
        why = error.what();
        // The text of an io error contains a remedy.
        remedy = error.code() == Errc::io ? "" : "; start host 0, and open its port for this host";
      }
    }
    std::this_thread::sleep_for(kRetryAfter);
  }
  if (meets && why.empty()) late_for_meeting(wanted, timeout);
  if (const std::string better = hint(wanted); !better.empty()) remedy = better;
  fail(Errc::timeout, "host {} has not reached host 0 within backend.timeout_s = {}: {}{}",
       wanted.index, static_cast<double>(timeout.count()) / 1000, why, remedy);
}

}  // namespace weft
