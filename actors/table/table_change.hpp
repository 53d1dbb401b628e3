#pragma once
/// TableChange: one change of the table of actors, as the keeper's process sends it to other hosts,
/// whose tables repeat all changes in their order and so become equal.

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// A failure that ended a mesh.
struct MeshCause {
  std::uint8_t code = 0;
  std::string text{};
};

/// The facts of a new mesh.
struct MeshFacts {
  std::string name{};
  std::string type{};
  std::uint32_t count = 0;
  std::int32_t max_restarts = 0;  ///< -1: no limit
  double hang_timeout_s = 0;      ///< 0: none; for the hosts, whose tables don't have it
  std::uint8_t restart = 0;       ///< an ActorRestart
  std::uint8_t then = 0;          ///< an ActorGivesUp
  bool own_thread = false;
  std::vector<std::string> endpoints{};
  std::vector<std::string> schemas{};  ///< of the endpoints
  std::string job{};                   ///< the id of SpawnOptions::lives_with; "": none
};

struct TableChange {
  enum Kind : std::uint8_t {
    add,       ///< facts
    position,  ///< number, word: those of set_position()
    restarts,  ///< number: a mesh; word
    cause,     ///< number: a mesh; failure
    end,       ///< number: a mesh
    release,   ///< number: a mesh
  };
  std::uint8_t kind = 0;
  std::uint32_t number = 0;
  std::uint64_t word = 0;
  MeshCause failure{};
  MeshFacts facts{};
};

}  // namespace weft
