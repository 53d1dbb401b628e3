#pragma once
/// Channel: frames from one writer to one reader on this host, in place in shared memory. It is for
/// transfers that aren't collectives: loading, rescue, resharding between meshes.
///
/// loan -> fill in place -> publish -> receive -> read in place -> release. Nothing is copied, and
/// frames arrive in order. There can be as many frames in transit as slots; a writer without a free
/// slot waits for the reader. The slot that was released last is loaned next, because it is still
/// in the cache.

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
  std::string name = {};  ///< 1 to 64 of a-z A-Z 0-9 _ .
  int slot_count = 3;     ///< 1 to kSlotCountMax
  /// The size of the largest frame in bytes, rounded up to a multiple of 64. For shard frames, use
  /// shard_layout().
  std::size_t slot_bytes = 0;
};

/// The memory of a channel. Thread-safe. It must outlive its writer and its reader, and not move
/// meanwhile.
class Channel {
 public:
  /// Returns "weft-<job>-channel-<name>", which JobMemory::remove(job) removes.
  static std::string segment_name(std::string_view job, std::string_view name);

  /// Reserves all slots. Throws invalid_argument, no_space, or io if the name is taken.
  static Channel create(const ChannelOptions& options);
  /// Throws not_found, version or corrupt. Every size and count is checked against the mapping.
  static Channel open(std::string_view job, std::string_view name);
  /// Makes a channel between threads. Job and name are only for messages.
  static Channel anonymous(const ChannelOptions& options);

  std::uint32_t slot_count() const { return slot_count_; }
  std::size_t slot_bytes() const { return slot_bytes_; }

  /// The ports of a channel use the following functions.
  const Segment& segment() const { return segment_; }
  const std::string& label() const { return label_; }  ///< "channel 'rescue' of job 12ab..."
  ChannelSide& side(ChannelRole role) const;
  /// An array of slot_count() + 1 words.
  ChannelWord* lane(ChannelRole sender) const;
  std::byte* slot(std::uint32_t index) const;

 private:
  Channel(Segment segment, std::string label);

  Segment segment_;
  std::string label_;
  // The values checked when the channel was opened. Later writes of the peer to the header are not
  // read.
  std::uint32_t slot_count_;
  std::uint64_t slot_bytes_;
};

/// The writer of a channel. A channel has only one writer in its life, and only one thread may use
/// it at a time. Throws the errors of ChannelPort.
class ChannelWriter {
 public:
  /// If `job` is given, its abort ends the waits. Throws invalid_argument if the channel has or had
  /// another writer.
  ChannelWriter(Channel& channel, WaitPolicy policy, const JobMemory* job = nullptr);

  /// Returns memory for the next frame, at a multiple of 64, with unspecified content. Waits for a
  /// slot. An unpublished loan is returned first. Throws invalid_argument for more than
  /// slot_bytes() or after close().
  std::span<std::byte> loan(std::size_t bytes);
  /// Does the same without waiting. Absent if no slot is free.
  std::optional<std::span<std::byte>> try_loan(std::size_t bytes);
  /// Gives the loaned frame to the reader. Wait-free. Throws invalid_argument without a loan.
  void publish();
  /// Announces that no frame follows. If the writer is destroyed without it, the writer counts as
  /// lost. Wait-free.
  void close() noexcept;

  /// The number of published frames.
  std::uint64_t count() const { return port_.sent(); }

 private:
  ChannelPort port_;
  std::vector<std::uint32_t> free_;          ///< in the order of release
  std::optional<std::size_t> loaned_bytes_;  ///< the last free slot's, if it is loaned
};

class ChannelReader;

/// Movable owner of a received frame; releases its slot. Must not outlive its reader.
class ChannelFrame {
 public:
  ChannelFrame(ChannelFrame&& other) noexcept;
  ChannelFrame& operator=(ChannelFrame&& other) noexcept;
  ~ChannelFrame();

  /// The frame, at a multiple of 64. Read it with view_shard_frame(), or with read_shard_frame() to
  /// verify the payload's checksum too.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Counted from 1.
  std::uint64_t number() const { return number_; }

 private:
  friend class ChannelReader;
  ChannelFrame() = default;

  ChannelPort* port_ = nullptr;
  std::uint32_t slot_ = 0;
  std::uint64_t number_ = 0;
  std::span<const std::byte> bytes_;
};

/// The reader of a channel. A channel has only one reader in its life, and only one thread may use
/// it at a time. Throws the errors of ChannelPort. After it is destroyed, the writer gets
/// peer_lost.
class ChannelReader {
 public:
  /// See ChannelWriter.
  ChannelReader(Channel& channel, WaitPolicy policy, const JobMemory* job = nullptr)
      : port_(channel, ChannelRole::reader, policy, job) {}

  /// Waits for the next frame and returns it. Absent if the writer has closed and every frame was
  /// received. The reader may hold several frames and release them in any order.
  std::optional<ChannelFrame> receive();
  /// Does the same without waiting. Also absent if there is no frame yet.
  std::optional<ChannelFrame> try_receive();
  /// Whether the writer has closed and every frame was received.
  bool ended() const { return port_.peer_end() == ChannelEnd::closed; }

  /// The number of received frames.
  std::uint64_t count() const { return port_.taken(); }

 private:
  ChannelPort port_;
};

}  // namespace weft
