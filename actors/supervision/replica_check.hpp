#pragma once
/// ReplicaCheck: compares what chips hold of the same tensors. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "actors/supervision/data_check.hpp"
#include "actors/supervision/replica_fault.hpp"

namespace weft {

/// A step's state is compared when all workers have told of it. In a generation each worker tells
/// of its steps in order, so what is found first is the first.
class ReplicaCheck {
 public:
  ReplicaCheck(int num_workers, int chips_per_worker)
      : num_workers_(num_workers), chips_per_worker_(chips_per_worker), data_(num_workers) {}

  /// What has come in the generation before is for nothing.
  void forget() {
    steps_.clear();
    data_.forget();
  }
  /// What doesn't fit together, as hashes for other chips than the worker has, is a fault too.
  std::optional<ReplicaFault> add(const StateHashes& hashes);
  std::optional<ReplicaFault> add(const DataHashes& hashes) { return data_.add(hashes); }

 private:
  struct Shard {
    int chip = 0;
    std::uint64_t hash = 0;
  };
  using Chips = std::vector<int>;
  using Replicas = std::map<std::uint64_t, std::vector<Shard>>;  // by piece
  struct Step {
    std::map<int, std::uint64_t> told;  ///< tensors, by worker
    int complete = 0;                   ///< workers
    std::vector<std::pair<std::string, Replicas>> tensors{};
    std::map<std::string, std::size_t> places{};  ///< of the tensors, by name
  };
  std::optional<ReplicaFault> compare(std::uint64_t number, const Step& step) const;
  /// Chips that hold the same of a piece, for each that some hold of it.
  static std::vector<Chips> sides_of(const std::vector<Shard>& shards);
  ReplicaFault describe(const std::vector<Chips>& sides) const;
  std::string name(const Chips& chips) const;

  int num_workers_;
  int chips_per_worker_;
  std::map<std::uint64_t, Step> steps_;
  DataCheck data_;
};

}  // namespace weft
