#pragma once
/// ArenaEngine: the part of an engine that is the same for all chips that use their arena.

#include "chips/engine/engine.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// An engine of a chip whose memory is its arena, which all processes of the host map. If a chip
/// has memory of its own, its arena has the host's copy of that memory.
class ArenaEngine : public Engine {
 public:
  /// `memory` is the memory of the host's chips. `memory` and `mesh` must outlive the engine.
  ArenaEngine(JobMemory& memory, const Mesh& mesh, int position, int local_index);

  int local_index() const final { return local_index_; }
  /// Makes the NUMA node of the calling thread provide the arena's memory, whichever thread
  /// reserves it later.
  void settle() noexcept final;
  void reserve(std::uint64_t offset, std::size_t bytes) override;
  void upload(std::uint64_t offset, std::size_t bytes,
              const std::function<void(std::byte*)>& fill) override;
  std::byte* host_address(std::uint64_t offset) override { return base_ + offset; }
  void copy_from(int position, std::uint64_t from, std::uint64_t to, std::size_t bytes) override;
  void download(std::uint64_t offset, std::span<std::byte> to) override;
  void add_to(StateHash& hash) override;

 private:
  JobMemory& memory_;
  const Mesh& mesh_;
  const int position_;
  const int local_index_;
  const int arena_;        ///< the chip's number in the job's memory
  std::byte* const base_;  ///< the beginning of the chip's arena
};

}  // namespace weft
