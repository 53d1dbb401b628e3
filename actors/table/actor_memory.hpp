#pragma once
/// ActorMemory: the shared memory of an actor system, as one of its processes has mapped it.

#include <optional>
#include <utility>

#include "actors/table/actor_table.hpp"
#include "transport/lanes/lane_node.hpp"
#include "transport/lanes/peer_table.hpp"
#include "transport/memory/life_lock.hpp"

namespace weft {

struct ActorMemory {
  ActorMemory(PeerTable its_peers, ActorTable its_actors, PeerId self,
              const PeerMemoryOptions& options)
      : peers(std::move(its_peers)), actors(std::move(its_actors)), node(peers, self, options) {}

  std::optional<LifeLock> life;  ///< held by a process that has claimed its slot; released last
  PeerTable peers;
  ActorTable actors;
  LaneNode node;
};

}  // namespace weft
