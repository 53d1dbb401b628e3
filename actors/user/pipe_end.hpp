#pragma once
/// PipeEnd: one end of a pipe, without the type of its values.
///
/// A pipe is a channel of the actor system. Each value is one frame, in native byte order:
///
///   frame = PipeFrameHead, padding to 64 bytes, payloads, PipePayload[payload_count], body
///
/// A payload is the elements of a tensor. Its offset is a multiple of 64 bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weft/actor/pipe.hpp>

#include "actors/user/actor_host.hpp"
#include "transport/channel/channel.hpp"

namespace weft {

struct PipeFrameHead {
  std::uint64_t body_offset = 0;
  std::uint32_t body_bytes = 0;
  std::uint32_t payload_count = 0;
};
struct PipePayload {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Reads a frame that another process has written, and could still change. Throws corrupt if a part
/// would be outside the frame. `owner` keeps the frame's memory.
detail::PipeValue read_pipe_frame(std::span<const std::byte> frame,
                                  const std::shared_ptr<const void>& owner);

/// Returns the prefix of the names of all channels for pipes that the given process has made.
std::string pipe_prefix(std::uint32_t slot, std::uint32_t incarnation);

/// Removes the pipes that the given process has made, except those whose ends are both in use.
void remove_pipes(std::string_view system, std::uint32_t slot, std::uint32_t incarnation);

namespace detail {

/// Opens its side of the channel at its first use. The end that opens second removes the channel's
/// name.
class PipeEnd final : public std::enable_shared_from_this<PipeEnd> {
 public:
  /// Identifies a pipe within its system: the process that made it, and its number in that process.
  struct Name {
    std::uint32_t slot = 0;
    std::uint32_t incarnation = 0;
    std::uint64_t number = 0;
  };

  PipeEnd(std::shared_ptr<ActorHost> host, const Name& name, ChannelRole role,
          double join_timeout_s);
  ~PipeEnd();
  PipeEnd(const PipeEnd&) = delete;
  PipeEnd& operator=(const PipeEnd&) = delete;

  bool write(const MessageWriter& value, bool may_wait);
  LoanedTensor loan(const TensorType& type);
  void close();
  std::optional<PipeValue> read(bool may_wait);
  bool has_ended();
  void put(MessageWriter& out);

 private:
  struct HeldFrame;
  class ShownWait;

  void open();
  void wait(const JobHost::WaitFor& wait_for);
  bool find_room(bool may_wait);
  void require_room(std::size_t bytes) const;

  std::shared_ptr<ActorHost> host_;
  Name name_;
  ChannelRole role_;
  double join_timeout_s_;
  bool was_sent_ = false;
  std::shared_ptr<Channel> channel_;
  std::optional<ChannelWriter> writer_;
  std::optional<ChannelReader> reader_;
  std::mutex frames_mutex_;      ///< needed because any thread may release the tensors of a value
  std::span<std::byte> next_{};  ///< memory of the next value; empty: not yet acquired
  std::size_t used_ = 0;         ///< bytes of next_ that loan() has given away
};

}  // namespace detail
}  // namespace weft
