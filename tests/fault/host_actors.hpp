#pragma once
/// Helpers that the scenarios of host_actors_app.cpp share.

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <weft/actor.hpp>

#include "tests/fault/scorer.hpp"

namespace weft::testing {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected: " + what);
}

using Mesh = ActorMesh<Scorer>;

/// Returns a mesh of one actor in each of `count` processes.
inline Mesh spawn(ActorSystem& system, int count, const Supervision& supervision = {}) {
  return system.spawn(scorer, {.name = "scorers",
                               .count = count,
                               .place = processes(count),
                               .own_thread = true,
                               .supervision = supervision});
}

inline HostTensor counted(ActorSystem& system, std::int64_t size) {
  LoanedTensor tensor = system.loan({DType::i32, Shape{size}});
  const auto words = tensor.get<std::int32_t>();
  std::iota(words.begin(), words.end(), 0);
  return std::move(tensor).finish();
}

inline void require_plus_one(const HostTensor& tensor, std::int64_t size) {
  const auto words = tensor.get<std::int32_t>();
  require(std::ssize(words) == size, fmt::format("{} words", size));
  for (std::int64_t i = 0; i < size; ++i) {
    require(words[static_cast<std::size_t>(i)] == i + 1, fmt::format("word {} of {}", i, size));
  }
}

// Scenarios in which processes or hosts are killed or stopped (host_actors_kills.cpp).
void kill_process(ActorSystem& system);
void kill_a_sender(ActorSystem& system);
void call_beside_a_full_lane(ActorSystem& system);
void hang(ActorSystem& system);
void lose_host(ActorSystem& system, int signal);
void give_up(ActorSystem& system);
/// Returns where the next incarnation of an actor is, as soon as it answers.
Where next_incarnation(const ActorRef<Scorer>& actor, int before);

}  // namespace weft::testing
