#pragma once
/// CollectiveTier: a way between chips by which collectives are carried out. Shared memory reaches
/// the chips of a host (SharedMemoryTier), a network those of several.

#include <cstdint>
#include <memory>
#include <string>

#include <weft/mesh.hpp>

#include "transport/blackbox/arrival_ledger.hpp"
#include "transport/collectives/collective_call.hpp"

namespace weft {

class CollectiveTier;

/// What a tier has worked out for a call that it is to carry out many times.
class TierCall {
 public:
  virtual ~TierCall() = default;
};

/// A call that a Communicator has checked and encoded, to be carried out many times. Movable; for
/// the Communicator that made it, and while that lives.
class PreparedCall {
 public:
  std::uint64_t id() const { return id_; }  ///< from 1; no two of a Communicator are alike
  const CallWords& words() const { return words_; }
  std::uint64_t digest() const { return digest_; }
  const std::string& name() const { return name_; }

 private:
  friend class Communicator;
  PreparedCall() = default;

  std::uint64_t id_ = 0;
  CallWords words_{};
  std::uint64_t digest_ = 0;  ///< of the words
  std::string name_;
  std::uint64_t bytes_ = 0;  ///< of the source, for the black box
  std::uint32_t text_ = 0;   ///< its text there
  std::uint32_t entry_ = 0;  ///< in the chip's ledger
  std::string label_;        ///< for the board: "all_reduce 'fc1.weight.grad'"
  CollectiveTier* tier_ = nullptr;
  std::unique_ptr<const TierCall> tier_call_;
};

/// A collective that a chip has started.
struct StartedCall {
  const PreparedCall* call = nullptr;
  std::uint64_t number = 0;     ///< of the chip's collectives
  std::uint64_t signature = 0;  ///< of call and number; equal on all chips of the group
  std::uint64_t step = 0;
};
/// "all_reduce #812 'fc1.weight.grad' over {data}: add f32 1 x 100, offset 4096 to 8192".
std::string to_string(const StartedCall& started, const Mesh& mesh);

/// One chip's end of a tier. Used by the Communicator's thread; one collective at a time. Every
/// tier adds in group order and rounds once, so that results have the same bits on all of them.
class CollectiveTier {
 public:
  virtual ~CollectiveTier() = default;

  /// `call` is valid for its group. Throws no_space where there is no memory for it.
  virtual std::unique_ptr<const TierCall> prepare(const CollectiveCall& call) = 0;
  /// Announces the chip's arrival and doesn't wait. `call` is what prepare() returned; both stay
  /// until the collective has ended.
  virtual void start(const StartedCall& started, const TierCall& call) = 0;
  /// Goes as far as it can without waiting; true: the collective has ended. Throws peer_lost and
  /// program_divergence, as Communicator::poll() says.
  virtual bool poll() = 0;
  /// Polls until the collective has ended. Throws timeout too, as Communicator::wait() says.
  virtual void wait() = 0;
  /// Of the collective that has ended: what this chip saw of the others' arrival. A tier that
  /// doesn't see it says that this chip came last.
  virtual ChipArrival arrival() const { return {}; }
};

}  // namespace weft
