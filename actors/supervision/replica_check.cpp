#include "actors/supervision/replica_check.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

/// Every message ends with this advice.
constexpr const char* kAdvice =
    "look for values that differ between workers: data or random numbers from which a "
    "replicated tensor is computed, values of a single worker, or tensors that on_each_chip "
    "writes; if you find none, suspect the machine's memory";

}  // namespace

std::optional<ReplicaFault> ReplicaCheck::add(const StateHashes& hashes) {
  if (hashes.generation != generation_) return {};
  const std::size_t words = hashes.tensors.size() * static_cast<std::size_t>(chips_per_worker_);
  if (hashes.worker < 0 || hashes.worker >= num_workers_ || hashes.pieces.size() != words ||
      hashes.hashes.size() != words) {
    return ReplicaFault{
        .step = hashes.step,
        .worker = hashes.worker >= 0 && hashes.worker < num_workers_ ? hashes.worker : -1,
        .message = fmt::format("worker {} sent {} hashes of {} tensors on {} chips at step {}",
                               hashes.worker, hashes.hashes.size(), hashes.tensors.size(),
                               chips_per_worker_, hashes.step)};
  }
  Step& step = steps_[hashes.step];
  std::size_t word = 0;
  for (const std::string& name : hashes.tensors) {
    const auto [place, is_new] = step.places.try_emplace(name, step.tensors.size());
    if (is_new) step.tensors.emplace_back(name, Replicas{});
    Replicas& replicas = step.tensors[place->second].second;
    for (int c = 0; c < chips_per_worker_; ++c, ++word) {
      replicas[hashes.pieces[word]].push_back(
          {.chip = hashes.worker * chips_per_worker_ + c, .hash = hashes.hashes[word]});
    }
  }
  std::uint64_t& told = step.told[hashes.worker];
  told += hashes.tensors.size();
  if (told >= hashes.num_tensors) ++step.complete;
  if (step.complete < num_workers_) return {};
  auto fault = compare(hashes.step, step);
  steps_.erase(hashes.step);
  return fault;
}

std::optional<ReplicaFault> ReplicaCheck::compare(std::uint64_t number, const Step& step) const {
  std::optional<ReplicaFault> fault;
  int others = 0;
  for (const auto& [name, replicas] : step.tensors) {
    for (const auto& [piece, shards] : replicas) {
      const auto sides = sides_of(shards);
      if (sides.size() == 1) continue;
      if (fault) {
        ++others;
      } else {
        fault = describe(sides);
        fault->step = number;
        fault->message = fmt::format("step {} begins with replicas of '{}' that differ: {}", number,
                                     name, fault->message);
      }
      break;
    }
  }
  if (!fault) return {};
  if (others > 0) {
    fault->message += fmt::format(" ({} other tensor{} too)", others, others == 1 ? "" : "s");
  }
  fault->message += fmt::format("; {}", kAdvice);
  return fault;
}

/// Groups the chips by hash; each group is a side. The largest side comes first. Of two sides with
/// the same size, the one with the lower chip comes first.
std::vector<ReplicaCheck::Chips> ReplicaCheck::sides_of(const std::vector<Shard>& shards) {
  std::map<std::uint64_t, Chips> by_hash;
  for (const Shard& shard : shards) by_hash[shard.hash].push_back(shard.chip);
  std::vector<Chips> sides;
  for (auto& [hash, chips] : by_hash) {
    std::ranges::sort(chips);
    sides.push_back(std::move(chips));
  }
  std::ranges::sort(sides, [](const Chips& a, const Chips& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  return sides;
}

ReplicaFault ReplicaCheck::describe(const std::vector<Chips>& sides) const {
  ReplicaFault fault;
  std::size_t all = 0;
  for (const Chips& side : sides) all += side.size();
  if (2 * sides[0].size() <= all) {
    std::vector<std::string> parts;
    for (const Chips& side : sides) parts.push_back(name(side));
    fault.message = fmt::format("{}, and no side has a majority", fmt::join(parts, " against "));
    return fault;
  }
  Chips few;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    few.insert(few.end(), sides[i].begin(), sides[i].end());
  }
  std::ranges::sort(few);
  const int first = few.front() / chips_per_worker_;
  if (first == few.back() / chips_per_worker_) fault.worker = first;
  fault.message =
      fmt::format("{} against {}, which agree and are the majority", name(few), name(sides[0]));
  return fault;
}

/// Returns a text such as "chips 4, 5 (worker 1)".
std::string ReplicaCheck::name(const Chips& chips) const {
  std::vector<int> workers;
  for (const int chip : chips) {
    const int worker = chip / chips_per_worker_;
    if (workers.empty() || workers.back() != worker) workers.push_back(worker);
  }
  return fmt::format("chip{} {} (worker{} {})", chips.size() == 1 ? "" : "s",
                     fmt::join(chips, ", "), workers.size() == 1 ? "" : "s",
                     fmt::join(workers, ", "));
}

}  // namespace weft
