#pragma once
/// SharedMemoryTier: carries out collectives of chips of one host, in their arenas and mailboxes.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "transport/blackbox/recorder.hpp"
#include "transport/collectives/group.hpp"
#include "transport/collectives/line_call.hpp"
#include "transport/collectives/slot_call.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/collectives/transfer_schedule.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

class SharedMemoryTier final : public CollectiveTier {
 public:
  /// `memory` and `mesh` must outlive the object.
  SharedMemoryTier(JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
                   WaitPolicy policy);
  ~SharedMemoryTier() override;

  std::unique_ptr<const TierCall> prepare(const CollectiveCall& call) override;
  void start(const StartedCall& started, const TierCall& call) override;
  bool poll() override;
  void wait() override;
  ChipArrival arrival() const override { return arrival_; }

 private:
  struct Call final : TierCall {
    Group* group = nullptr;
    std::unique_ptr<const SlotCall> message = {};  ///< set if the call's bytes travel in a slot
    std::optional<LineCall> line = {};             ///< set if the call's bytes travel in the lines
    TransferSchedule schedule = {};
  };
  using Clock = std::chrono::steady_clock;

  Group& find_group(AtomList atoms);
  void perform_stage(std::span<std::byte* const> mailboxes) const;
  void announce();
  bool all_arrived();
  void start_message();
  void post_message();
  bool poll_message();
  bool wait_on();
  void wake_message_sleepers() const;
  bool is_message_ready() const;
  void require_readers() const;
  void note_missing();
  bool is_ready();
  std::uint64_t expected_announcement() const;
  bool pass_sync();
  void end_wait();
  void wake_sleepers() const;
  void require_same_call() const;
  void fail_if_aborted() const;
  int awaited() const;
  bool is_missing(const Peer& peer) const;
  bool spin();
  bool spin_for_message() const;
  void await_peers(std::optional<Clock::time_point>& since);
  void sleep(Clock::duration longest);
  void sleep_for_message(Clock::duration longest) const;
  void find_divergence(Clock::duration waited) const;
  void require_presence(const Peer& peer, Clock::duration waited) const;
  std::optional<RecordedCall> last_call(int member) const;
  std::optional<RecordedCall> posted_by(int member, std::uint64_t number, int reader) const;
  RecordedCall started_call() const;
  std::optional<RecordedCall> call_of(int member, std::uint64_t number) const;
  [[noreturn]] void fail_divergence(int member, std::uint64_t number) const;
  [[noreturn]] void fail_message() const;
  [[noreturn]] void fail_calls(int member, const RecordedCall& call, int other_member,
                               const std::optional<RecordedCall>& other) const;
  [[noreturn]] void fail_history() const;
  [[noreturn]] void fail_timeout(Clock::duration waited) const;

  JobMemory* memory_;
  const Mesh* mesh_;
  int position_;
  int chip_;    ///< the chip's number in the host's memory
  int device_;  ///< the chip's device id
  Recorder recorder_;
  WaitPolicy policy_;
  std::vector<std::unique_ptr<Group>> groups_;
  int yields_to_skip_ = 0;

  // The collective in progress.
  const StartedCall* started_ = nullptr;
  const Call* call_ = nullptr;
  Group* group_ = nullptr;
  std::uint64_t message_ = 0;  ///< number of the current message, if the call goes through slots
  bool posted_ = false;
  std::size_t stage_ = 0;    ///< stage whose sync is in progress
  std::uint32_t epoch_ = 0;  ///< epoch of the sync of `stage_`
  std::size_t arrived_ = 0;  ///< how many peers, from the next in group order, are at this epoch
  std::size_t missing_ = 0;  ///< index of the peer that was missing at the last check
  std::uint64_t wait_begin_ = 0;  ///< tick at which the current wait began; 0: no wait
  std::uint64_t longest_ = 0;     ///< longest wait of the collective, caused by last_chip
  ChipArrival arrival_;
};

}  // namespace weft
