#pragma once
/// CollectiveTier: carries out collectives between chips over one kind of connection: shared memory
/// between the chips of a host (SharedMemoryTier), or a network between chips of several hosts.

#include <cstdint>
#include <memory>
#include <string>

#include <weft/sharding/mesh.hpp>

#include "transport/blackbox/arrival_ledger.hpp"
#include "transport/collectives/collective_call.hpp"

namespace weft {

class CollectiveTier;

/// The data that a tier prepares for a call that is carried out many times.
class TierCall {
 public:
  virtual ~TierCall() = default;
};

/// A call that a Communicator has checked and encoded, to be carried out many times. Movable. Only
/// the Communicator that made it may use it.
class PreparedCall {
 public:
  std::uint64_t id() const { return id_; }  ///< from 1; unique within a Communicator
  const CallWords& words() const { return words_; }
  std::uint64_t digest() const { return digest_; }
  const std::string& name() const { return name_; }

 private:
  friend class Communicator;
  PreparedCall() = default;

  std::uint64_t id_ = 0;
  CallWords words_{};
  std::uint64_t digest_ = 0;  ///< digest of words_
  std::string name_;
  std::uint64_t bytes_ = 0;  ///< size of the source, for the black box
  std::uint32_t text_ = 0;   ///< id of the call's text in the black box
  std::uint32_t entry_ = 0;  ///< the call's entry in the chip's ledger
  std::string label_;        ///< for the board: "all_reduce 'fc1.weight.grad'"
  CollectiveTier* tier_ = nullptr;
  std::unique_ptr<const TierCall> tier_call_;
};

/// A collective that a chip has started.
struct StartedCall {
  const PreparedCall* call = nullptr;
  std::uint64_t number = 0;     ///< number among the chip's collectives
  std::uint64_t signature = 0;  ///< signature of call and number; equal on all chips of the group
  std::uint64_t step = 0;
};
/// Returns a text such as "all_reduce #812 'fc1.weight.grad' over {data}: add f32 1 x 100, offset
/// 4096 to 8192".
std::string to_string(const StartedCall& started, const Mesh& mesh);

/// One chip's end of a tier. Only the Communicator's thread uses it, for one started collective at
/// a time. Every tier adds in group order and rounds once, so results have the same bits on all
/// tiers.
class CollectiveTier {
 public:
  virtual ~CollectiveTier() = default;

  /// Prepares a call that was checked for its group. Throws no_space if the call's data doesn't fit
  /// in memory.
  virtual std::unique_ptr<const TierCall> prepare(const CollectiveCall& call) = 0;
  /// Announces the chip's arrival without waiting. `call` is a result of prepare(). Both arguments
  /// must live until the collective has ended.
  virtual void start(const StartedCall& started, const TierCall& call) = 0;
  /// Continues as far as possible without waiting. Returns true if the collective has ended. Throws
  /// peer_lost and program_divergence as Communicator::poll() does.
  virtual bool poll() = 0;
  /// Waits until the collective has ended. Throws the errors of poll(), and timeout as
  /// Communicator::wait() does.
  virtual void wait() = 0;

  /// Starts a collective that runs while the chip computes. It is carried out after all collectives
  /// that were started before. Returns false, and does nothing, if the tier can't do that. Both
  /// arguments must live until the collective has ended or abandon() has returned.
  virtual bool begin(const StartedCall& /*started*/, const TierCall& /*call*/) { return false; }
  /// Do what poll() and wait() do, for the oldest collective that was begun and hasn't been seen to
  /// end.
  virtual bool poll_begun() { return true; }
  virtual void wait_begun() {}
  /// Throws the error of a collective that was begun, if one has failed.
  virtual void check_begun() {}
  /// Gives up all collectives that were begun and haven't ended. Their memory isn't used any more,
  /// and the tier can't carry out further collectives.
  virtual void abandon() noexcept {}

  /// Returns how this chip waited for other chips in the last collective that ended. A tier that
  /// doesn't know this reports that this chip came last.
  virtual ChipArrival arrival() const { return {}; }
};

}  // namespace weft
