#pragma once
/// The meshes, actors and messages of a simulated actor system.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <weft/actor/actor_context.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/message/bytes.hpp>

#include "actors/keeper/mesh_supervision.hpp"
#include "actors/simulate/actor_fiber.hpp"
#include "actors/table/actor_protocol.hpp"
#include "transport/actors/actor_words.hpp"
#include "transport/actors/awaited.hpp"

namespace weft {

using SimulatedTime = std::chrono::steady_clock::time_point;

/// Thrown through the functions of an actor whose process is killed. It isn't a std::exception, so
/// that the actor doesn't handle it as an error of its own.
struct ProcessKilled {};

/// Returns the id of process `number`. The test's process is number 0.
constexpr PeerId simulated_process(std::uint32_t number) { return {.slot = number}; }
inline constexpr PeerId kTestProcess = simulated_process(0);

struct SimulatedMessage {
  Asked asked{};
  std::uint32_t sender = 0;  ///< the row + 1 of the actor that has sent it; 0: no actor
  std::vector<std::byte> bytes{};
  std::vector<MessagePayload> payloads{};
};

/// Something that can happen. Events of the same channel happen in the order in which they were
/// added.
struct SimulatedEvent {
  enum Kind : std::uint64_t { message, answer, parked, callback, order, made, failed, death };
  using Channel = std::array<std::uint64_t, 4>;  ///< begins with a Kind
  struct Lane {
    PeerId from{};
    std::uint32_t port = 0;
    bool is_tell = false;
  };

  Channel channel{};
  PeerId process{};                ///< the process in which it happens
  std::optional<PeerId> by{};      ///< the process that has sent an answer
  std::uint64_t call = 0;          ///< the number of the answered call
  std::optional<Lane> lane{};      ///< the lane of a call or tell
  std::function<bool()> is_due{};  ///< may happen once this returns true; empty: at once
  std::function<void()> happen{};
};

/// An actor's entry in the table of actors and in the keeper.
struct SimulatedRow {
  std::uint32_t mesh = 0;
  std::uint32_t index = 0;
  ActorPosition position{};
  ActorFunction function{};
  std::optional<SimulatedTime> since{};  ///< when the running function began; none: no function
                                         ///< runs
  std::optional<AwaitedCall> awaited{};
  int child = -1;  ///< index of its process in SimulatedMesh::children; -1: the test's
  bool is_made = false;
  bool has_failed = false;  ///< a restart is due, or the actor isn't made again
  bool has_ended = false;
};

struct SimulatedChild {
  std::uint32_t number = 0;         ///< number among all started processes of the system
  std::optional<PeerId> process{};  ///< none: the process has ended
  bool has_joined = false;
};

struct SimulatedMesh {
  std::string name{};
  const detail::ActorClass* type = nullptr;
  SpawnOptions options{};
  MeshSupervision supervision;
  std::uint32_t first_row = 0;
  std::vector<SimulatedChild> children{};
  bool is_ready = false;
  bool is_ending = false;
  std::optional<Error> cause{};
};

/// The object and the state of an actor in a process.
struct SimulatedActor {
  const detail::ActorClass* type = nullptr;
  std::uint32_t row = 0;
  bool own_thread = false;
  std::stop_source stop{};
  std::unique_ptr<ActorContext> context{};
  std::shared_ptr<void> object{};       ///< null: the actor has failed, or isn't made yet
  std::deque<SimulatedMessage> kept{};  ///< messages for the next incarnation
};

/// A thread that runs actors in a process.
struct SimulatedPort {
  std::uint32_t number = 0;
  std::unique_ptr<ActorFiber> fiber{};   ///< made when a function that may wait runs for the first
                                         ///< time
  std::function<bool()> can_continue{};  ///< whether the waiting function can continue; empty: none
                                         ///< waits
  SimulatedTime wait_limit{};            ///< the latest time at which to ask can_continue again
  std::map<std::uint32_t, SimulatedActor> actors{};  ///< by row

  bool is_free() const { return fiber == nullptr || !fiber->is_running(); }
};

}  // namespace weft
