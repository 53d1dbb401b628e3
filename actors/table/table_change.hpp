#pragma once
/// TableChange: a change of the table of actors, which the keeper's process sends to other hosts.
/// Their tables make all changes in the same order, and so become equal.

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// Why a mesh has ended: an error's code and text.
struct MeshCause {
  std::uint8_t code = 0;
  std::string text{};
};

/// Describes a new mesh.
struct MeshFacts {
  std::string name{};
  std::string type{};
  std::uint32_t count = 0;
  std::int32_t max_restarts = 0;  ///< -1: no limit
  double hang_timeout_s = 0;      ///< 0: no limit; for agents, because tables don't have it
  std::uint8_t restart = 0;       ///< an ActorRestart
  std::uint8_t then = 0;          ///< an ActorGivesUp
  bool own_thread = false;
  std::vector<std::string> endpoints{};
  std::vector<std::string> schemas{};  ///< the endpoints' schemas
  std::string job{};                   ///< the id of SpawnOptions::lives_with; "": none
};

struct TableChange {
  enum Kind : std::uint8_t {
    add,       ///< uses `facts`
    position,  ///< uses `number` and `word`: the actor and position of set_position()
    restarts,  ///< uses `number`, a mesh, and `word`
    cause,     ///< uses `number`, a mesh, and `failure`
    end,       ///< uses `number`, a mesh
    release,   ///< uses `number`, a mesh
  };
  std::uint8_t kind = 0;
  std::uint32_t number = 0;
  std::uint64_t word = 0;
  MeshCause failure{};
  MeshFacts facts{};
};

}  // namespace weft
