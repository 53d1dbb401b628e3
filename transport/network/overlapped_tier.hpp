#pragma once
/// OverlappedTier: carries out collectives between hosts while their chip computes.
///
/// 1. Collectives are carried out one after the other, in the order in which the chip starts them.
/// 2. While collectives are queued, the tier and its wires belong to a thread of this object. While
///    none are, they belong to the chip's thread, which carries out its collectives itself.
/// 3. The first begin() starts the thread. It touches the memory of collectives only while they are
///    queued, and no memory after abandon() or the destructor.
/// 4. The first error ends the queue; every later call of the chip throws that error.

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
  /// `recorder` is the chip's recorder, to which only the chip's thread writes.
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

  // Only the chip's thread uses the next members.
  Recorder recorder_;
  std::uint64_t started_ = 0;        ///< queue place of the last start(); 0: not queued
  std::deque<std::uint64_t> begun_;  ///< queue places that weren't waited for yet
  ChipArrival arrival_;

  std::unique_ptr<NetworkTier> tier_;  ///< see item 2 above
  std::atomic<int> awaited_{-1};       ///< the chip that the thread awaits; only for display

  std::mutex mutex_;  ///< guards all members below except the thread
  std::condition_variable_any work_;
  std::condition_variable_any progress_;
  std::deque<Queued> queue_;  ///< the first one is in progress
  std::uint64_t pushed_ = 0;  ///< number of collectives ever queued; places count from 1
  std::uint64_t ended_ = 0;   ///< number of these that have ended
  std::exception_ptr failure_;
  std::jthread thread_;  ///< declared last, so that it ends first
};

}  // namespace weft
