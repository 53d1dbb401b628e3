#include "chips/cpu/jit/registers.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft::jit {

Registers::Registers(const Graph& graph, int num_vectors, int num_masks, Moves& moves)
    : graph_(graph),
      num_vectors_(num_vectors),
      num_masks_(num_masks),
      moves_(moves),
      uses_(graph.nodes.size()) {
  // Uses are positions in the order of execution: node n is at 2 n + 1, and a store before node n
  // at 2 n.
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
  vectors_ = {.free = {}, .nodes = std::vector<int>(at(num_vectors_), -1)};
  masks_ = {.free = {}, .nodes = std::vector<int>(at(num_masks_ + 1), -1)};
  for (int reg = num_vectors_; reg-- > 0;) vectors_.free.push_back(reg);
  for (int reg = num_masks_; reg > 0; --reg) masks_.free.push_back(reg);
  free_slots_.clear();
  slots_ = 0;
  for (const int node : hoisted) {
    places_[at(node)].stays = true;
    places_[at(node)].reg = vectors_.free.back();
    vectors_.free.pop_back();
  }
}

Registers::File& Registers::file_of(int node) {
  const bool is_in_masks = num_masks_ > 0 && node >= 0 && is_mask(graph_.nodes[at(node)].kind);
  return is_in_masks ? masks_ : vectors_;
}

void Registers::put(int node, int reg) {
  places_[at(node)].reg = reg;
  file_of(node).nodes[at(reg)] = node;
}

void Registers::free(int node) {
  File& file = file_of(node);
  const int reg = std::exchange(places_[at(node)].reg, -1);
  file.nodes[at(reg)] = -1;
  file.free.push_back(reg);
}

void Registers::evict(int node_for) {
  int farthest = -1;
  int farthest_use = -1;
  for (const int node : file_of(node_for).nodes) {
    if (node < 0 || std::ranges::find(pinned_, node) != pinned_.end()) continue;
    const int use = uses_[at(node)][places_[at(node)].next_use];
    if (use < farthest_use || (use == farthest_use && node > farthest)) continue;
    farthest_use = use;
    farthest = node;
  }
  WEFT_CHECK(farthest >= 0, node_for);
  NodeRegister& place = places_[at(farthest)];
  if (place.slot < 0) {
    if (free_slots_.empty()) free_slots_.push_back(slots_++);
    place.slot = free_slots_.back();
    free_slots_.pop_back();
    moves_.spill(farthest, place.reg, place.slot);
  }
  free(farthest);
}

int Registers::take(int node) {
  File& file = file_of(node);
  if (file.free.empty()) evict(node);
  const int reg = file.free.back();
  file.free.pop_back();
  peak_ = std::max(peak_, num_vectors_ - static_cast<int>(vectors_.free.size()));
  return reg;
}

int Registers::of(int node) {
  NodeRegister& place = places_[at(node)];
  pinned_.push_back(node);
  if (place.reg < 0) {
    WEFT_CHECK(place.slot >= 0, node);
    put(node, take(node));
    moves_.reload(node, place.reg, place.slot);
  }
  return place.reg;
}

int Registers::make(int node) {
  const int reg = take(node);
  put(node, reg);
  pinned_.push_back(node);
  return reg;
}

int Registers::borrow() {
  borrowed_.push_back(take(-1));
  return borrowed_.back();
}

bool Registers::ends(int node) const {
  const NodeRegister& place = places_[at(node)];
  return place.reg >= 0 && !place.stays && place.next_use + 1 >= uses_[at(node)].size();
}

int Registers::take_over(int operand, int node) {
  const int reg = std::exchange(places_[at(operand)].reg, -1);
  put(node, reg);
  pinned_.push_back(node);
  return reg;
}

void Registers::used(int node) {
  NodeRegister& place = places_[at(node)];
  const bool is_last = ++place.next_use >= uses_[at(node)].size();
  if (!is_last || place.stays) return;
  if (place.slot >= 0) free_slots_.push_back(place.slot);
  if (place.reg >= 0) free(node);
}

void Registers::next() {
  vectors_.free.insert(vectors_.free.end(), borrowed_.begin(), borrowed_.end());
  borrowed_.clear();
  pinned_.clear();
}

}  // namespace weft::jit
