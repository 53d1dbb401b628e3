#pragma once
/// OverlappedTier: carries out collectives between hosts while their chip computes.
///
/// 1. Collectives are carried out one after the other, in the order in which the chip starts them.
/// 2. While collectives are queued, the tier and its wires belong to a thread of this object.
///    Otherwise they belong to the chip's thread, which then carries out its collectives itself.
/// 3. The thread begins with the first begin(), and touches memory of collectives only while they
///    are queued. After abandon() and after the destructor it touches none.
/// 4. The first error ends the queue; every later call of the chip throws it.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "transport/blackbox/recorder.hpp"
#include "transport/network/network_tier.hpp"

namespace weft {

class OverlappedTier final : public CollectiveTier {
 public:
  /// `recorder` is the chip's; only the chip's thread writes to it.
  OverlappedTier(std::unique_ptr<NetworkTier> tier, const Recorder& recorder);
  ~OverlappedTier() override;

  std::unique_ptr<const TierCall> prepare(const CollectiveCall& call) override;
  void start(const StartedCall& started, const TierCall& call) override;
  bool poll() override;
  void wait() override;
  bool begin(const StartedCall& started, const TierCall& call) override;
  bool poll_begun() override;
  void wait_begun() override;
  void check_begun() override;
  void abandon() noexcept override;
  ChipArrival arrival() const override { return arrival_; }

 private:
  struct Queued {
    const StartedCall* started = nullptr;
    const TierCall* call = nullptr;
  };

  std::uint64_t push(const StartedCall& started, const TierCall& call);
  void run(const std::stop_token& stop);
  bool carry_out(const Queued& next, const std::stop_token& stop);
  bool has_ended(std::uint64_t place);
  void await(std::uint64_t place);

  // Only the chip's thread uses these.
  Recorder recorder_;
  std::uint64_t started_ = 0;        ///< place of the last start() in the queue; 0: not queued
  std::deque<std::uint64_t> begun_;  ///< places in the queue that weren't waited for
  ChipArrival arrival_;

  std::unique_ptr<NetworkTier> tier_;  ///< see invariant 2
  std::atomic<int> awaited_{-1};       ///< the chip for which the thread waits; only shown

  std::mutex mutex_;  ///< guards all below but the thread
  std::condition_variable_any work_;
  std::condition_variable_any progress_;
  std::deque<Queued> queue_;  ///< its front is in progress
  std::uint64_t pushed_ = 0;  ///< collectives that were ever queued; their places count from 1
  std::uint64_t ended_ = 0;   ///< those of them that have ended
  std::exception_ptr failure_;
  std::jthread thread_;  ///< declared last, so that it ends first
};

}  // namespace weft
