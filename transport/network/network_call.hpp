#pragma once
/// NetworkCall: the plan of what one chip sends, receives and adds in a collective between hosts.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/collectives/transfer_schedule.hpp"

namespace weft {

/// A parcel whose pieces have a smaller mean size than this is one post, through scratch memory.
inline constexpr std::size_t kPieceBytesMin = std::size_t{16} << 10;

struct ParcelPiece {
  std::size_t offset = 0;  ///< offset in the arena
  std::size_t bytes = 0;
};

/// The bytes that one chip sends to another in a stage. Both chips compute equal sizes.
struct Parcel {
  std::vector<ParcelPiece> pieces;
  std::size_t bytes = 0;
  std::size_t scratch = 0;  ///< offset in the scratch memory, if is_in_scratch
  bool is_in_scratch = false;

  void add(std::size_t offset, std::size_t size) {
    pieces.push_back({offset, size});
    bytes += size;
  }
  bool is_packed() const { return pieces.size() > 1 && bytes / pieces.size() < kPieceBytesMin; }
  std::size_t post_count() const { return is_packed() ? 1 : pieces.size(); }
};

/// Calls body(memory) for each post of the parcel.
template <typename Body>
void for_each_post(const Parcel& parcel, std::byte* arena, std::byte* scratch, const Body& body) {
  if (parcel.is_packed()) return body(std::span(scratch + parcel.scratch, parcel.bytes));
  std::size_t at = parcel.scratch;
  for (const ParcelPiece& piece : parcel.pieces) {
    body(std::span(parcel.is_in_scratch ? scratch + at : arena + piece.offset, piece.bytes));
    at += piece.bytes;
  }
}

struct ParcelCopy {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t bytes = 0;
};

struct NetworkReduction {
  std::size_t own = 0;  ///< offset of the chip's own operand in its arena
  std::size_t to = 0;
  std::size_t at = 0;  ///< offset of a peer's operand in its parcel
  std::int64_t count = 0;
};

/// A stage of a call: parcels to exchange, then copies and sums of the data that has arrived.
struct NetworkStage {
  std::vector<Parcel> sent;      ///< by peer
  std::vector<Parcel> received;  ///< by peer
  std::vector<ParcelCopy> copies;
  std::vector<NetworkReduction> reductions;
};

/// The peers are the other members of the group, in group order, from the member after the chip.
struct NetworkCall final : TierCall {
  std::vector<int> wires;  ///< by peer
  /// True if results overwrite operands that must still be sent to other chips. Then a stage ends
  /// only when all of its bytes have been sent.
  bool overwrites_sent = false;
  int group_size = 0;
  int index = 0;  ///< index of the chip itself in the group
  ReduceKind reduce = ReduceKind::add;
  DType dtype = DType::f32;
  std::vector<NetworkStage> stages;
  std::size_t scratch_bytes = 0;

  /// Fills in everything except `wires`, `group_size` and `index`.
  void plan(const CollectiveCall& call);
  int member_of(std::size_t peer) const {
    return (index + 1 + static_cast<int>(peer)) % group_size;
  }
  /// Returns how many receives from the peer are posted for this stage and all later ones.
  std::size_t posts_from(std::size_t stage, std::size_t peer) const {
    std::size_t count = 0;
    for (; stage < stages.size(); ++stage) count += stages[stage].received[peer].post_count();
    return count;
  }

 private:
  void plan_stage(const std::vector<TransferSchedule>& schedules, std::size_t stage);
  void place_in_scratch(Parcel& parcel);
};

}  // namespace weft
