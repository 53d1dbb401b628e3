#include "chips/engine/arena_engine.hpp"

#include <cstring>

#include <weft/tensor/error.hpp>

#include "chips/engine/state_hash.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {

ArenaEngine::ArenaEngine(JobMemory& memory, const Mesh& mesh, int position, int local_index)
    : memory_(memory),
      mesh_(mesh),
      position_(position),
      local_index_(local_index),
      arena_(chip_on_host(mesh, position)),
      base_(memory.arena(arena_)) {}

void ArenaEngine::settle() noexcept { memory_.prefer_this_node(arena_); }

void ArenaEngine::reserve(std::uint64_t offset, std::size_t bytes) {
  memory_.reserve(arena_, offset, bytes);
}

void ArenaEngine::upload(std::uint64_t offset, std::size_t,
                         const std::function<void(std::byte*)>& fill) {
  fill(base_ + offset);
}

void ArenaEngine::copy_from(int position, std::uint64_t from, std::uint64_t to, std::size_t bytes) {
  if (host_of(mesh_, position) != host_of(mesh_, position_)) {
    fail(Errc::unavailable, "chip {} can't copy from chip {}, which is on another host",
         mesh_.device_at(position_), mesh_.device_at(position));
  }
  const std::byte* arena = memory_.arena(chip_on_host(mesh_, position));
  std::memcpy(base_ + to, arena + from, bytes);
}

void ArenaEngine::download(std::uint64_t offset, std::span<std::byte> to) {
  std::memcpy(to.data(), base_ + offset, to.size());
}

void ArenaEngine::add_to(StateHash& hash) { hash.add(local_index_, base_); }

}  // namespace weft
