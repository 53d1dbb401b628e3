#pragma once
/// AgentLink: the interface through which an agent uses its actor. The actor talks to the trainer.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include <weft/tensor/error.hpp>

#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/host_place.hpp"
#include "actors/supervision/action.hpp"
#include "transport/board/actor_row.hpp"

namespace weft {

namespace agent_event {

/// If this host's memory is prepared for `generation`, ends the waits of the host's chips, which
/// then fail with the reason `why`.
struct Abort {
  std::uint64_t generation = 0;
  std::string why;
};
/// Marks the board rows of this worker, whose process has ended.
struct MarkLost {
  int worker = -1;
};
struct SetStatus {
  JobStatus status{};
};
/// Removes the names of the arenas, since no other process will open them.
struct RemoveArenaNames {};
/// Tells that the job has ended.
struct Stop {};
/// Tells that the trainer lives.
struct Beat {};
/// The job hangs, so each host keeps a record of its part (`is_kept`); or the job makes progress
/// again, so each host removes its record.
struct HangRecord {
  bool is_kept = false;
};
/// Tells that the trainer counts this host as lost.
struct Dropped {
  std::string why;
};
/// Tells that the connection to the trainer has ended.
struct TrainerGone {};

}  // namespace agent_event

/// An order of the trainer, or the end of the connection to the trainer.
using AgentEvent =
    std::variant<action::Launch, action::Kill, action::Prepare, agent_event::Abort,
                 agent_event::MarkLost, agent_event::SetStatus, agent_event::RemoveArenaNames,
                 agent_event::Stop, agent_event::Beat, agent_event::HangRecord,
                 agent_event::Dropped, agent_event::TrainerGone>;

/// Owns the actor system. Thread-safe.
class AgentLink {
 public:
  using OnEvent = std::function<void(AgentEvent)>;

  /// Connects to the trainer, which may start later than this call. `on_event` is called on the
  /// actor's thread. Throws timeout, version, or the errors of read_rendezvous().
  static std::unique_ptr<AgentLink> connect(const HostPlace& wanted,
                                            std::chrono::milliseconds timeout,
                                            const OnEvent& on_event);
  /// Tries to connect once. Throws unavailable if nothing listens at the place's address, and
  /// timeout, io or version.
  static std::unique_ptr<AgentLink> connect_once(const HostPlace& place,
                                                 std::chrono::milliseconds timeout,
                                                 const OnEvent& on_event);
  virtual ~AgentLink() = default;

  /// Joins the job. Throws timeout, peer_lost if the connection ends, and mesh_mismatch, with the
  /// trainer's reason, if the trainer refuses.
  virtual HostWelcome join(const HostJoin& request) = 0;
  /// Tells the trainer where this host stores checkpoints. Throws timeout, peer_lost if the
  /// connection ends, and mesh_mismatch, with the trainer's reason, if the job can't continue with
  /// that folder.
  virtual void tell_folder(const HostFolder& folder) = 0;
  /// Returns this host's place, with the address of the trainer that was reached.
  virtual const HostPlace& place() const = 0;
  /// Returns the address at which workers of this host reach the trainer.
  virtual const std::string& address() const = 0;
  virtual void process_started(int worker, int pid) = 0;
  virtual void process_ended(const ProcessEnded& ended) = 0;
  virtual void tell(const HostNews& news) = 0;
  virtual void prepared(std::uint64_t number) = 0;
  /// Makes the job end soon, with all its loops at the same step.
  virtual void preempt(const std::string& why) = 0;
  /// Ends the job.
  virtual void cancel(Errc code, const std::string& why) = 0;
};

}  // namespace weft
