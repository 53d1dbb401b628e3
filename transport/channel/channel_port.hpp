#pragma once
/// ChannelPort: the common part of both sides of a channel. channel_port.cpp lists the invariants.

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

/// Sends slots to the other side and takes slots from it. Even if the other side writes wrong
/// values, take() never returns a slot that this side owns already or that doesn't exist.
class ChannelPort {
 public:
  struct Message {
    std::uint32_t slot = 0;
    std::uint64_t bytes = 0;
  };

  /// Becomes side `role` of the channel. Throws invalid_argument if another port is or was this
  /// side.
  ChannelPort(Channel& channel, ChannelRole role, WaitPolicy policy, const JobMemory* job);
  ~ChannelPort();
  ChannelPort(const ChannelPort&) = delete;
  ChannelPort& operator=(const ChannelPort&) = delete;

  const Channel& channel() const { return *channel_; }

  /// Passes a slot that this side owns to the other side. Wait-free.
  void send(Message message) noexcept;
  /// Announces that this side sends no more messages. Wait-free.
  void close() noexcept;
  bool closed() const { return closed_; }
  /// Returns the next slot from the other side, which this side then owns. Returns nothing if no
  /// slot has come yet, or no more will come. Wait-free. Throws corrupt for an invalid message, and
  /// peer_lost if the other side was destroyed without close().
  std::optional<Message> take();
  /// Waits as await() does, but at most for `at_most`; with 0, only checks whether the other side
  /// is gone. Returns whether take() would find a message.
  bool await_for(std::chrono::nanoseconds at_most);
  /// Waits as the policy says until take() would find a message. Throws peer_lost if the process of
  /// the other side is gone or the job was aborted. Throws timeout with both sides, the frame and
  /// the time waited; await() may then be called again.
  void await();

  /// Returns how the other side ended; std::nullopt while it may still send.
  std::optional<ChannelEnd> peer_end() const { return peer_end_; }
  std::uint64_t sent() const { return out_.number - 1; }
  std::uint64_t taken() const { return in_.number - 1; }
  /// Records the number of the frame that the writer fills, so that the reader can name it if the
  /// writer dies.
  void note_filling(std::uint64_t frame) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  /// A position in a lane.
  struct Cursor {
    ChannelWord* words = nullptr;
    std::uint32_t word_count = 0;
    std::uint32_t index = 0;
    std::uint64_t number = 1;  ///< number of the next message, whose word is at `index`

    ChannelWord& word() const { return words[index]; }
    std::uint32_t awaited() const { return static_cast<std::uint32_t>(number); }
    /// Returns the number that the word at `index` must have before message `number` is stored
    /// there.
    std::uint32_t previous() const {
      return number > word_count ? static_cast<std::uint32_t>(number - word_count) : 0;
    }
    void advance() noexcept;
  };

  void post(std::uint32_t slot, std::uint64_t bytes) noexcept;
  bool arrived() const noexcept;
  void sleep(std::chrono::nanoseconds at_most) noexcept;
  bool peer_died() const;
  void check_peer() const;
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
  std::vector<bool> owned_;  ///< whether this side owns a slot, by the slot's number
  bool closed_ = false;
  std::optional<ChannelEnd> peer_end_;
};

}  // namespace weft
