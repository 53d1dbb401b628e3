#pragma once
/// NetworkTier: carries out collectives of chips of several hosts, over wires.
///
/// In each collective, every two chips of the group send each other one message: a header, with the
/// call and the step that the sender has committed, and the bytes that the receiver needs. A chip
/// waits for the messages of all others, so no chip is more than one collective ahead of another.
/// The receives of a collective are posted before anything else is done.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "transport/blackbox/recorder.hpp"
#include "transport/collectives/call_record.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"
#include "transport/network/network_call.hpp"
#include "transport/wires/wires.hpp"

namespace weft {

/// A wire that broke while a collective needed it.
struct WireLoss {
  int chip = 0;  ///< device id of the chip that reports it
  int peer = 0;  ///< device id of the other end
  std::string why;
};

class NetworkTier final : public CollectiveTier {
 public:
  /// Called once for each lost wire, on the thread that carries out the collective. A lost wire
  /// isn't an error of the collective: the tier waits until the job is aborted or the deadline
  /// passes.
  using OnLoss = std::function<void(const WireLoss& loss)>;

  /// `wires` lead to the chips with which this chip calls collectives, and carry nothing else.
  /// `memory` is the memory of the host's chips. `memory`, `mesh` and `wires` must outlive the
  /// tier.
  NetworkTier(JobMemory& memory, const Mesh& mesh, int position, Wires& wires,
              const Recorder& recorder, WaitPolicy policy, OnLoss on_loss = {});
  /// Closes the wires if a collective hasn't ended.
  ~NetworkTier() override;

  /// Prepares a call as in CollectiveTier. Also throws unavailable if there is no wire to a chip of
  /// the group.
  std::unique_ptr<const TierCall> prepare(const CollectiveCall& call) override;
  void start(const StartedCall& started, const TierCall& call) override;
  bool poll() override;
  void wait() override;
  /// Waits as wait() does, but on a thread other than the chip's: doesn't spin, and shows nothing
  /// on the board. Calls `goes_on` with the awaited chip at least once per kSleepSlice. As soon as
  /// `goes_on` returns false, returns false; the collective then never ends.
  bool wait_beside(const std::function<bool(int chip)>& goes_on);
  ChipArrival arrival() const override { return arrival_; }

 private:
  /// The chip at the other end of a wire.
  struct Remote {
    int chip = 0;  ///< device id
    bool is_twin = false;
    bool is_lost = false;    ///< the loss was reported
    std::uint64_t told = 0;  ///< the last step that the chip reported as committed
    RecordedCall last{};     ///< the chip's last call
    CallHeader sent{};
    CallHeader received{};
  };
  using Clock = std::chrono::steady_clock;

  bool wait(bool may_yield, const std::function<bool(int chip)>& goes_on);
  bool advance();
  void post_receives();
  void post_sends();
  void perform_stage();
  bool has_received(std::size_t peer, std::size_t posts_left) const;
  bool is_complete(std::size_t peer) const;
  void take_header(std::size_t peer);
  void publish_far() const;
  void note_wait();
  void end_wait();
  void report_losses();
  const WireStatus& status(std::size_t peer) const;
  std::size_t awaited() const;
  [[noreturn]] void fail_timeout(Clock::duration waited) const;

  JobMemory* memory_;
  const Mesh* mesh_;
  int position_;
  int chip_;  ///< device id of this chip
  Wires* wires_;
  Recorder recorder_;
  WaitPolicy policy_;
  OnLoss on_loss_;
  std::byte* arena_;
  std::vector<Remote> remotes_;  ///< by wire
  /// Scratch memory for data that can't be received in its place, as large as the largest call
  /// needs.
  std::unique_ptr<std::byte[]> scratch_;
  std::size_t scratch_bytes_ = 0;

  // The state of the collective in progress.
  const StartedCall* started_ = nullptr;
  const NetworkCall* call_ = nullptr;
  std::size_t stage_ = 0;
  std::vector<bool> has_header_;  ///< by peer of the group: its header was checked
  bool has_moved_ = false;        ///< the last poll() has moved bytes
  std::size_t missing_ = 0;       ///< the peer that the last poll() lacked
  std::uint64_t wait_begin_ = 0;  ///< tick at which the wait began; 0: no wait
  ChipArrival arrival_;
};

}  // namespace weft
