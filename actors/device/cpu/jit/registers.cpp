#include "actors/device/cpu/jit/registers.hpp"

#include <algorithm>
#include <limits>

#include <weft/error.hpp>

namespace weft::jit {

Registers::Registers(const Graph& graph, int num_vectors, int num_masks, Moves& moves)
    : graph_(graph),
      num_vectors_(num_vectors),
      num_masks_(num_masks),
      moves_(moves),
      uses_(graph.nodes.size()) {
  // A node's position is 2 * its number + 1; a store's, 2 * the number of the node behind it.
  for (const Graph::Store& store : graph.stores) uses_[at(store.node)].push_back(2 * store.before);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (uses_[i].empty()) continue;
    const int position = 2 * static_cast<int>(i) + 1;
    for (const int operand : graph.nodes[i].operands) {
      if (operand < 0) continue;
      std::vector<int>& uses = uses_[at(operand)];
      if (uses.empty() || uses.back() != position) uses.push_back(position);
    }
  }
  for (std::vector<int>& uses : uses_) std::ranges::sort(uses);
}

void Registers::begin(const std::vector<int>& hoisted) {
  places_.assign(graph_.nodes.size(), {});
  free_vectors_.clear();
  free_masks_.clear();
  for (int reg = num_vectors_; reg-- > 0;) free_vectors_.push_back(reg);
  for (int reg = num_masks_; reg > 0; --reg) free_masks_.push_back(reg);
  for (const int node : hoisted) {
    places_[at(node)].stays = true;
    places_[at(node)].reg = free_vectors_.back();
    free_vectors_.pop_back();
  }
}

std::vector<int>& Registers::file_of(int node) {
  const bool is_in_masks = num_masks_ > 0 && node >= 0 && is_mask(graph_.nodes[at(node)].step);
  return is_in_masks ? free_masks_ : free_vectors_;
}

void Registers::evict(int node_for) {
  const std::vector<int>& file = file_of(node_for);
  int farthest = -1;
  int farthest_use = -1;
  for (int node = 0; node < static_cast<int>(places_.size()); ++node) {
    const Place& place = places_[at(node)];
    if (place.reg < 0 || place.stays || &file_of(node) != &file) continue;
    if (std::ranges::find(pinned_, node) != pinned_.end()) continue;
    const int use = uses_[at(node)][place.next_use];
    if (use > farthest_use) {
      farthest_use = use;
      farthest = node;
    }
  }
  WEFT_CHECK(farthest >= 0, node_for);
  Place& place = places_[at(farthest)];
  if (place.slot < 0) {
    place.slot = slots_++;
    moves_.spill(farthest, place.reg, place.slot);
  }
  file_of(farthest).push_back(place.reg);
  place.reg = -1;
}

int Registers::take(int node) {
  std::vector<int>& file = file_of(node);
  if (file.empty()) evict(node);
  const int reg = file.back();
  file.pop_back();
  peak_ = std::max(peak_, num_vectors_ - static_cast<int>(free_vectors_.size()));
  return reg;
}

int Registers::of(int node) {
  Place& place = places_[at(node)];
  pinned_.push_back(node);
  if (place.reg < 0) {
    WEFT_CHECK(place.slot >= 0, node);
    place.reg = take(node);
    moves_.reload(node, place.reg, place.slot);
  }
  return place.reg;
}

int Registers::make(int node) {
  const int reg = take(node);
  places_[at(node)].reg = reg;
  pinned_.push_back(node);
  return reg;
}

int Registers::borrow() {
  borrowed_.push_back(take(-1));
  return borrowed_.back();
}

bool Registers::ends(int node) const {
  const Place& place = places_[at(node)];
  return place.reg >= 0 && !place.stays && place.next_use + 1 >= uses_[at(node)].size();
}

int Registers::take_over(int operand, int node) {
  const int reg = places_[at(operand)].reg;
  places_[at(operand)].reg = -1;
  places_[at(node)].reg = reg;
  pinned_.push_back(node);
  return reg;
}

void Registers::used(int node) {
  Place& place = places_[at(node)];
  const bool is_last = ++place.next_use >= uses_[at(node)].size();
  if (!is_last || place.reg < 0 || place.stays) return;
  file_of(node).push_back(place.reg);
  place.reg = -1;
}

void Registers::next() {
  free_vectors_.insert(free_vectors_.end(), borrowed_.begin(), borrowed_.end());
  borrowed_.clear();
  pinned_.clear();
}

}  // namespace weft::jit
