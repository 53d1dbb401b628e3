#pragma once
/// PipeEnd: one end of a pipe, without the type of its values. Programs use PipeWriter and
/// PipeReader.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <weft/actor/loan.hpp>
#include <weft/message/bytes.hpp>

namespace weft {

struct PipeOptions {
  /// The maximum number of values in the pipe, 1 to 256. These values wait for the reader, or the
  /// reader still uses their tensors. If the pipe is full, the writer waits.
  int credits = 64;
  /// The maximum size of a value in bytes, 1 to 2^39: its fields (at most 64 KiB), the elements of
  /// its tensors (at most 64), and up to 80 bytes for each tensor. The pipe takes `credits` times
  /// this memory.
  std::size_t value_bytes = 4096;
  /// Seconds that one end waits for the first use of the other end.
  double join_timeout_s = 30;
};

namespace detail {

class ActorHost;
class PipeEnd;

/// A value that the reader has taken from the pipe.
struct PipeValue {
  std::vector<std::byte> bytes{};
  std::vector<MessagePayload> payloads{};
  ActorHost* process = nullptr;
};

struct PipeEnds {
  std::shared_ptr<PipeEnd> writer{};
  std::shared_ptr<PipeEnd> reader{};
};

PipeEnds make_pipe(const std::shared_ptr<ActorHost>& process, const PipeOptions& options);
/// Writes a value. Returns false if there is no credit and `may_wait` is false.
bool pipe_write(PipeEnd* end, const MessageWriter& value, bool may_wait);
LoanedTensor pipe_loan(PipeEnd* end, const TensorType& type);
void pipe_close(PipeEnd* end);
/// Takes the next value. Returns std::nullopt at the end of the stream, or if there is no value and
/// `may_wait` is false.
std::optional<PipeValue> pipe_read(PipeEnd* end, bool may_wait);
bool pipe_has_ended(PipeEnd* end);
void put_pipe(MessageWriter& out, PipeEnd* end);
std::shared_ptr<PipeEnd> get_pipe(MessageReader& in, bool is_writer);

}  // namespace detail

}  // namespace weft
