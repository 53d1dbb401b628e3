#pragma once
/// Channel: passes frames from one writer to one reader on this host, in place in shared memory, in
/// transfers that aren't collectives: loading, rescue, resharding, pipes between actors.
///
/// A frame passes these stages: loan -> fill in place -> publish -> receive -> read in place ->
/// release. Nothing is copied, and frames arrive in order. Each frame takes a slot; if no slot is
/// free, the writer waits for the reader. The slot that was released last is loaned next, because
/// it is still in the cache.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/channel/channel_format.hpp"
#include "transport/channel/channel_port.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/segment.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

struct ChannelOptions {
  std::string job = {};   ///< 32 hex digits
  std::string name = {};  ///< 1 to 64 characters of a-z A-Z 0-9 _ .
  int slot_count = 3;     ///< 1 to kSlotCountMax
  /// The size of the largest frame in bytes. It is rounded up to a multiple of 64. For shard
  /// frames, shard_layout() computes it.
  std::size_t slot_bytes = 0;
};

/// The memory of a channel. Thread-safe. It must outlive its writer and its reader, and must not be
/// moved while they exist.
class Channel {
 public:
  /// Returns "weft-<job>-channel-<name>", which JobMemory::remove(job) removes.
  static std::string segment_name(std::string_view job, std::string_view name);

  /// Creates a channel with its slots. Throws invalid_argument, no_space, or io (name taken).
  static Channel create(const ChannelOptions& options);
  /// Opens a channel. Throws not_found, version, or corrupt if a size doesn't fit the mapping.
  static Channel open(std::string_view job, std::string_view name);
  /// Makes a channel between threads of this process. Error messages contain the job and the name.
  static Channel anonymous(const ChannelOptions& options);

  std::uint32_t slot_count() const { return slot_count_; }
  std::size_t slot_bytes() const { return slot_bytes_; }

  /// The functions below are only for ChannelPort.
  const Segment& segment() const { return segment_; }
  const std::string& label() const { return label_; }  ///< "channel 'rescue' of job 12ab..."
  ChannelSide& side(ChannelRole role) const;
  /// Returns an array of slot_count() + 1 words.
  ChannelWord* lane(ChannelRole sender) const;
  std::byte* slot(std::uint32_t index) const;

 private:
  Channel(Segment segment, std::string label);

  Segment segment_;
  std::string label_;
  // The values that were checked when the channel was opened. They are copies, because the peer may
  // write to the header later.
  std::uint32_t slot_count_;
  std::uint64_t slot_bytes_;
};

/// The writer of a channel. A channel can have only one writer in its lifetime, and only one thread
/// at a time may use the writer. Its functions throw the errors of ChannelPort.
class ChannelWriter {
 public:
  /// Becomes the channel's writer. If `job` is given and is aborted, all waits end. Throws
  /// invalid_argument if the channel has or had another writer.
  ChannelWriter(Channel& channel, WaitPolicy policy, const JobMemory* job = nullptr);

  /// Returns memory for the next frame, at a multiple of 64 bytes, with unspecified content. Waits
  /// for a free slot. Gives up an earlier loan that wasn't published. Throws invalid_argument if
  /// `bytes` exceeds slot_bytes(), and after close().
  std::span<std::byte> loan(std::size_t bytes);
  /// Like loan(), but returns nothing instead of waiting if no slot is free.
  std::optional<std::span<std::byte>> try_loan(std::size_t bytes);
  /// Waits for a free slot, but at most for `at_most`. Returns whether try_loan() may find one.
  bool wait_for(std::chrono::nanoseconds at_most) { return port_.await_for(at_most); }
  /// Passes the loaned frame to the reader. Wait-free. Throws invalid_argument if there is no loan.
  void publish();
  /// Tells the reader that no frame follows. If the writer is destroyed without a call of close(),
  /// the reader gets peer_lost. Wait-free.
  void close() noexcept;
  bool closed() const { return port_.closed(); }
  std::uint64_t count() const { return port_.sent(); }  ///< published frames

 private:
  ChannelPort port_;
  std::vector<std::uint32_t> free_;  ///< numbers of the free slots, in the order of their release
  std::optional<std::size_t> loaned_bytes_;  ///< size of the loan, whose slot is free_.back()
};

class ChannelReader;

/// Owns a received frame, and releases its slot at the end. Movable. Must not outlive the reader.
class ChannelFrame {
 public:
  ChannelFrame(ChannelFrame&& other) noexcept;
  ChannelFrame& operator=(ChannelFrame&& other) noexcept;
  ~ChannelFrame();

  /// Returns the frame, which begins at a multiple of 64 bytes. view_shard_frame() reads it;
  /// read_shard_frame() also verifies the payload's checksum.
  std::span<const std::byte> bytes() const { return bytes_; }
  std::uint64_t number() const { return number_; }  ///< counts the channel's frames from 1

 private:
  friend class ChannelReader;
  ChannelFrame() = default;

  ChannelPort* port_ = nullptr;
  std::uint32_t slot_ = 0;
  std::uint64_t number_ = 0;
  std::span<const std::byte> bytes_;
};

/// The reader of a channel. A channel can have only one reader in its lifetime, and only one thread
/// at a time may use the reader. Its functions throw the errors of ChannelPort. When the reader has
/// been destroyed, the writer gets peer_lost.
class ChannelReader {
 public:
  /// The parameters are the same as those of ChannelWriter.
  ChannelReader(Channel& channel, WaitPolicy policy, const JobMemory* job = nullptr)
      : port_(channel, ChannelRole::reader, policy, job) {}

  /// Waits for the next frame. Returns nothing if the writer has closed the channel and every frame
  /// was received. The caller may hold several frames and release them in any order.
  std::optional<ChannelFrame> receive();
  /// Like receive(), but returns nothing instead of waiting if there is no frame yet.
  std::optional<ChannelFrame> try_receive();
  /// Waits for a frame or the channel's end, at most for `at_most`. Returns whether it has come.
  bool wait_for(std::chrono::nanoseconds at_most) { return port_.await_for(at_most); }
  /// Returns whether the writer has closed the channel and every frame was received.
  bool ended() const { return port_.peer_end() == ChannelEnd::closed; }
  std::uint64_t count() const { return port_.taken(); }  ///< received frames

 private:
  ChannelPort port_;
};

}  // namespace weft
