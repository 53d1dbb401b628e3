#pragma once
/// The rank side of bench_collectives: an implementation derives from Collectives, and serve()
/// times it.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "bench/collectives/protocol.hpp"

namespace weft::bench {

/// The tensor that an op reads, and the memory for the op's result; empty if the op has none.
struct Buffers {
  std::span<float> source;
  std::span<float> destination;
};

/// The sizes of the source and destination of an op, in elements. The larger size is `count`.
struct Counts {
  std::size_t source = 0;
  std::size_t destination = 0;
};
Counts counts_of(Op op, std::size_t count, int ranks);

/// One rank of an implementation. Functions throw unavailable for ops that the implementation
/// lacks.
class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual void barrier() = 0;
  /// Prepares run() for the op and for the metric in which it will be measured. The preparation
  /// isn't timed.
  virtual Buffers prepare(Op op, std::size_t bytes, Metric metric);
  virtual void run();

  /// Opens channels for Op::channel between ranks 0 and 1: messages of `bytes` in both directions.
  /// Memory from loan() is filled in place and then sent; memory from receive() is read and then
  /// released.
  virtual void open_channel(std::size_t bytes);
  virtual std::span<float> loan();
  virtual void send();
  virtual std::span<const float> receive();
  virtual void release();
};

/// The rank of a process and the number of ranks. They come from environment variables, except for
/// processes that MPI numbers.
struct Place {
  int rank = 0;
  int ranks = 1;
  std::string job = {};
  std::string folder = {};

  static Place from_environment();
};

/// Returns whether each rank can have its own core.
bool core_each(int ranks);
/// Binds the calling thread to core rank % cores if each rank can have its own core.
void pin(int rank, int ranks);

/// Answers the requests of the bench until the bench closes the socket.
void serve(int rank, int ranks, Collectives& collectives);

/// Runs `body` as the body of main(): prints its exceptions to stderr. Returns the exit status.
int run_rank(const std::function<void()>& body);

}  // namespace weft::bench
