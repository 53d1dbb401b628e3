#pragma once
/// Pipe: a stream of values from one actor or program to another, through shared memory.
///
///   weft::Pipe<Frame> pipe = system.pipe<Frame>({.credits = 8, .value_bytes = 4 << 20});
///   camera.tell<&Camera::stream>(pipe.writer);           // void stream(PipeWriter<Frame> out)
///   for (const Frame& frame : pipe.reader) show(frame);  // until the camera calls out.close()

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <weft/actor/pipe_end.hpp>
#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>

namespace weft {

/// The end of a pipe that writes. Copies are the same end; only one thread may use it at a time. An
/// end may be sent in a message once, before its first use; then only the receiver may use it.
/// Functions throw peer_lost if the reader was destroyed or its process has died. A function that
/// has to wait throws invalid_argument on a thread that several actors share (spawn them with
/// own_thread), timeout if the reader isn't used within PipeOptions::join_timeout_s, and cancelled
/// if the actor is asked to stop.
template <Message T>
class PipeWriter {
 public:
  /// Makes an end without a pipe; its functions throw invalid_argument.
  PipeWriter() = default;
  explicit PipeWriter(std::shared_ptr<detail::PipeEnd> end) : end_(std::move(end)) {}

  /// Writes a value. Waits until the pipe has a credit (PipeOptions::credits). Throws
  /// invalid_argument if the value is larger than PipeOptions::value_bytes, or after close().
  void write(const T& value) { detail::pipe_write(end_.get(), bytes_of(value), true); }
  /// Writes a value if the pipe has a credit; otherwise returns false.
  bool try_write(const T& value) { return detail::pipe_write(end_.get(), bytes_of(value), false); }
  /// Returns a tensor in the memory of the next value: fill it and make it part of that value,
  /// which is then written without copying the tensor. Don't use the tensor after write(). Waits as
  /// write() does.
  LoanedTensor loan(const TensorType& type) { return detail::pipe_loan(end_.get(), type); }
  /// Ends the stream: the reader gets the remaining values, and then the end. If all copies of the
  /// writer are destroyed without close(), the reader gets peer_lost instead.
  void close() { detail::pipe_close(end_.get()); }

  const std::shared_ptr<detail::PipeEnd>& pipe_end() const { return end_; }

 private:
  static MessageWriter bytes_of(const T& value) {
    MessageWriter out;
    MessageCodec<T>::put(out, value);
    return out;
  }

  std::shared_ptr<detail::PipeEnd> end_;
};

/// The end of a pipe that reads. The rules for copies, sending and errors are those of PipeWriter.
template <Message T>
class PipeReader {
 public:
  PipeReader() = default;
  explicit PipeReader(std::shared_ptr<detail::PipeEnd> end) : end_(std::move(end)) {}

  /// Waits for the next value. Returns nothing once all values were read and the writer has called
  /// close(). The value's tensors are in the pipe's memory, and occupy a credit until they are
  /// destroyed. Throws corrupt if the bytes can't be a T.
  std::optional<T> read() { return value_of(detail::pipe_read(end_.get(), true)); }
  /// Returns the next value without waiting; nothing if there is none now. If has_ended() is true,
  /// no value will come.
  std::optional<T> try_read() { return value_of(detail::pipe_read(end_.get(), false)); }
  bool has_ended() const { return detail::pipe_has_ended(end_.get()); }

  /// Iterates over the stream to its end: `for (const T& value : reader)`.
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(PipeReader* reader) : reader_(reader) { ++*this; }
    const T& operator*() const { return *value_; }
    Iterator& operator++() {
      value_.reset();  // its tensors occupy a credit, so free them first
      value_ = reader_->read();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !value_; }

   private:
    PipeReader* reader_;
    std::optional<T> value_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() { return {}; }

  const std::shared_ptr<detail::PipeEnd>& pipe_end() const { return end_; }

 private:
  static std::optional<T> value_of(std::optional<detail::PipeValue> read) {
    if (!read) return std::nullopt;
    MessageReader in(read->bytes, read->payloads, read->process);
    T value = MessageCodec<T>::get(in);
    in.finish();
    return value;
  }

  std::shared_ptr<detail::PipeEnd> end_;
};

/// A new pipe. ActorContext, ActorSystem and AttachedSystem make pipes.
template <Message T>
struct Pipe {
  PipeWriter<T> writer;
  PipeReader<T> reader;
};

namespace detail {
template <Message T>
Pipe<T> make_pipe_of(const std::shared_ptr<ActorHost>& process, const PipeOptions& options) {
  PipeEnds ends = make_pipe(process, options);
  return {.writer = PipeWriter<T>(std::move(ends.writer)),
          .reader = PipeReader<T>(std::move(ends.reader))};
}
}  // namespace detail

template <typename T>
struct MessageCodec<PipeWriter<T>> {
  static std::string schema() { return "pipe_writer<" + MessageCodec<T>::schema() + ">"; }
  static void put(MessageWriter& out, const PipeWriter<T>& writer) {
    detail::put_pipe(out, writer.pipe_end().get());
  }
  static PipeWriter<T> get(MessageReader& in) { return PipeWriter<T>(detail::get_pipe(in, true)); }
};
template <typename T>
struct MessageCodec<PipeReader<T>> {
  static std::string schema() { return "pipe_reader<" + MessageCodec<T>::schema() + ">"; }
  static void put(MessageWriter& out, const PipeReader<T>& reader) {
    detail::put_pipe(out, reader.pipe_end().get());
  }
  static PipeReader<T> get(MessageReader& in) { return PipeReader<T>(detail::get_pipe(in, false)); }
};

}  // namespace weft
