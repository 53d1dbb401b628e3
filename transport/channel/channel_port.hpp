#pragma once
/// ChannelPort: what the two sides of a channel have in common. Invariants: channel_port.cpp.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/channel/channel_format.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/life_lock.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

class Channel;

/// Sends slots to the other side and takes those that it sends. Whatever the other side writes, it
/// is never given a slot that it has already, nor one that the channel hasn't got.
class ChannelPort {
 public:
  struct Message {
    std::uint32_t slot = 0;
    std::uint64_t bytes = 0;
  };

  /// Throws invalid_argument where the channel has or had this side.
  ChannelPort(Channel& channel, ChannelRole role, WaitPolicy policy, const JobMemory* job);
  ~ChannelPort();
  ChannelPort(const ChannelPort&) = delete;
  ChannelPort& operator=(const ChannelPort&) = delete;

  const Channel& channel() const { return *channel_; }

  /// Hands over a slot that this side owns. Wait-free.
  void send(Message message) noexcept;
  /// Nothing is sent after it. Wait-free.
  void close() noexcept;
  bool closed() const { return closed_; }
  /// The next slot from the other side, which this side owns then; absent if there is none, yet or
  /// ever. Wait-free. Throws corrupt for a message that can't be, peer_lost where the other side
  /// was destroyed before it had closed.
  std::optional<Message> take();
  /// Waits as the policy says until take() finds something. Throws peer_lost (the other side's
  /// process is gone; the job was aborted), timeout (naming who waits for whom, for which frame,
  /// how long; after which it may be called again).
  void await();

  /// Absent: it goes on.
  std::optional<ChannelEnd> peer_end() const { return peer_end_; }
  std::uint64_t sent() const { return out_.number - 1; }
  std::uint64_t taken() const { return in_.number - 1; }
  /// The writer's note of the frame that it fills: the reader names it if the writer dies.
  void note_filling(std::uint64_t frame) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  /// A place in a lane.
  struct Cursor {
    ChannelWord* words = nullptr;
    std::uint32_t word_count = 0;
    std::uint32_t index = 0;
    std::uint64_t number = 1;  ///< of the message that comes to stand at `index`

    ChannelWord& word() const { return words[index]; }
    std::uint32_t awaited() const { return static_cast<std::uint32_t>(number); }
    /// What stands there before it.
    std::uint32_t previous() const {
      return number > word_count ? static_cast<std::uint32_t>(number - word_count) : 0;
    }
    void advance() noexcept;
  };

  void post(std::uint32_t slot, std::uint64_t bytes) noexcept;
  bool arrived() const noexcept;
  void sleep(std::chrono::nanoseconds at_most) noexcept;
  bool peer_died() const;
  std::nullopt_t end_of_peer() const;
  std::string peer_name() const;
  std::string awaited_text() const;
  [[noreturn]] void fail_lost(std::string_view how) const;

  Channel* channel_;
  ChannelRole role_;
  WaitPolicy policy_;
  const JobMemory* job_;
  LifeLock lock_;
  ChannelSide* own_;
  ChannelSide* peer_;
  Cursor out_;
  Cursor in_;
  std::vector<bool> owned_;  ///< by slot
  bool closed_ = false;
  std::optional<ChannelEnd> peer_end_;
};

}  // namespace weft
