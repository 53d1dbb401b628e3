#pragma once
/// ChipCollectives: carries out the collectives that bodies of on_each_chip() call on a Chip.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>

#include <weft/sharding/chip.hpp>

#include "transport/collectives/collective_call.hpp"

namespace weft {

/// A collective on elements anywhere in host memory, whose arguments Chip has checked. Source and
/// destination consist of parts of `count` elements: one part per chip of the group, or a single
/// part.
struct ChipCall {
  CollectiveKind kind = CollectiveKind::barrier;
  AtomList atoms{};
  ReduceKind reduce = ReduceKind::add;
  DType dtype = DType::f32;
  std::span<const int> from{};  ///< the sources, as in CollectiveCall
  const std::byte* source = nullptr;
  std::byte* destination = nullptr;
  std::int64_t count = 0;
  std::int64_t group_size = 1;
  std::int64_t parts_in_source = 1;
  std::int64_t parts_in_destination = 1;
  std::source_location where{};  ///< the source line of the call in the body

  /// Returns whether the destination is the same memory as the source.
  bool is_in_place() const {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
  }
  std::string site() const;  ///< returns text such as "train.cpp:41"
  /// Returns this collective as a call on the arena, from `from_offset` to `to_offset`. The call
  /// has no number of elements yet (set_count()).
  CollectiveCall in_arena(std::uint64_t from_offset, std::uint64_t to_offset) const;
  /// Sets in `call` the number of elements of each part to `piece`.
  void set_count(CollectiveCall& call, std::int64_t piece) const;
};

/// Carries out the collectives of one chip, on the chip's thread. The functions throw the same
/// errors as those of Chip.
class ChipCollectives {
 public:
  /// `mesh` must outlive the object.
  ChipCollectives(const Mesh& mesh, int position, int local_index)
      : chip_(*this, mesh, position, local_index) {}
  virtual ~ChipCollectives() = default;
  ChipCollectives(const ChipCollectives&) = delete;
  ChipCollectives& operator=(const ChipCollectives&) = delete;

  /// Returns the Chip that a body gets.
  Chip& chip() { return chip_; }

  virtual void carry_out(const ChipCall& call) = 0;
  /// Returns the address of the chip's memory at `offset`, where the body may read and write until
  /// it ends.
  virtual std::byte* address(std::uint64_t offset) = 0;

 private:
  Chip chip_;
};

}  // namespace weft
