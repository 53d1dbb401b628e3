#pragma once
/// ReplicaCheck: finds chips whose replicas of a tensor differ. It does no I/O.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "actors/supervision/data_check.hpp"

namespace weft {

/// Compares the state after a step when all workers have sent their hashes of it. In a generation
/// each worker sends the hashes of its steps in order, so the difference that is found first is
/// also the one that happened first.
class ReplicaCheck {
 public:
  ReplicaCheck(int num_workers, int chips_per_worker)
      : num_workers_(num_workers), chips_per_worker_(chips_per_worker), data_(num_workers) {}

  /// Drops the hashes of earlier generations, because the new one repeats their steps.
  void begin_generation(std::uint64_t generation) {
    generation_ = generation;
    steps_.clear();
    data_.forget();
  }
  /// Adds a worker's hashes. Returns a fault if chips differ, or if the message is malformed, for
  /// example if it has hashes for chips that the worker doesn't have.
  std::optional<ReplicaFault> add(const StateHashes& hashes);
  std::optional<ReplicaFault> add(const DataHashes& hashes) {
    return hashes.generation == generation_ ? data_.add(hashes) : std::nullopt;
  }
  /// See DataCheck::ended().
  std::optional<ReplicaFault> ended(int worker, std::uint64_t generation) {
    return generation == generation_ ? data_.ended(worker) : std::nullopt;
  }

 private:
  struct Shard {
    int chip = 0;
    std::uint64_t hash = 0;
  };
  using Chips = std::vector<int>;
  using Replicas = std::map<std::uint64_t, std::vector<Shard>>;  // hashes of a tensor, by piece
  struct Step {
    std::map<int, std::uint64_t> told;  ///< number of tensors, by worker
    int complete = 0;                   ///< number of workers that have sent all tensors
    std::vector<std::pair<std::string, Replicas>> tensors{};
    std::map<std::string, std::size_t> places{};  ///< indices of the tensors, by name
  };
  std::optional<ReplicaFault> compare(std::uint64_t number, const Step& step) const;
  /// Groups the chips that have a piece by the hash of the piece.
  static std::vector<Chips> sides_of(const std::vector<Shard>& shards);
  ReplicaFault describe(const std::vector<Chips>& sides) const;
  std::string name(const Chips& chips) const;

  int num_workers_;
  int chips_per_worker_;
  std::uint64_t generation_ = 1;
  std::map<std::uint64_t, Step> steps_;
  DataCheck data_;
};

}  // namespace weft
