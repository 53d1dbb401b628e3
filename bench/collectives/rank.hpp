#pragma once
/// The rank side of bench_collectives: an implementation fills in Collectives, serve() times it.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "bench/collectives/protocol.hpp"

namespace weft::bench {

/// Where an op finds its tensor and leaves its result; empty: it has none.
struct Buffers {
  std::span<float> source;
  std::span<float> destination;
};

/// Source and destination of `op`, whose larger one has `count` elements, in elements.
struct Counts {
  std::size_t source = 0;
  std::size_t destination = 0;
};
Counts counts_of(Op op, std::size_t count, int ranks);

/// One rank of an implementation. What it can't do throws unavailable.
class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual void barrier() = 0;
  /// Says what run() will do, and how it will be measured. Not timed.
  virtual Buffers prepare(Op op, std::size_t bytes, Metric metric);
  virtual void run();

  /// Op::channel, between ranks 0 and 1: messages of `bytes` in both directions. What loan() gave
  /// is filled in place, then sent; what receive() gave is read, then released.
  virtual void open_channel(std::size_t bytes);
  virtual std::span<float> loan();
  virtual void send();
  virtual std::span<const float> receive();
  virtual void release();
};

/// Who a rank process is: from its environment, for those that weren't numbered otherwise.
struct Place {
  int rank = 0;
  int ranks = 1;
  std::string job = {};
  std::string folder = {};

  static Place from_environment();
};

/// True: a core for each of them.
bool core_each(int ranks);
/// Binds the calling thread to core rank % cores, where there is a core for each rank.
void pin(int rank, int ranks);

/// Answers the bench until it closes the socket.
void serve(int rank, int ranks, Collectives& collectives);

/// Body of main(): what `body` throws goes to stderr. Returns the exit status.
int run_rank(const std::function<void()>& body);

}  // namespace weft::bench
