/// Runs a rank of the limit of the machine: the loads and stores of an op without any
/// synchronization, and the exchange of a cache line.
///
/// A barrier is one exchange, and so is an op of less than kExchangeBytes in a loop: every rank
/// stores to its own cache line and waits for the stores of all others. With more ranks than cores,
/// an exchange is one sched_yield() per rank instead. Any other op consists of its loads and stores
/// alone. A cycle has an exchange before the op and one after it, because other ranks must have
/// written the data; the baseline has the same two exchanges.
///
/// A channel consists of slots in the sender's arena and a word in each direction. If all slots are
/// free, the sender takes the first slot, which is in the cache; otherwise it takes the next slot.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "bench/collectives/limit_loops.hpp"
#include "bench/collectives/rank.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"
#include "transport/reduce/copy.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr std::uint64_t kSlotsMin = 3;
constexpr std::uint64_t kSlotsMax = 64;
constexpr std::size_t kSlotsBytes = 65536;  ///< total size of all slots, unless a message is larger

/// Words that one rank writes, each in its own cache line.
struct Lines {
  alignas(128) std::atomic<std::uint32_t> number;    ///< number of exchanges that were announced
  alignas(128) std::atomic<std::uint64_t> sent;      ///< messages * kSlotsMax + the last slot
  alignas(128) std::atomic<std::uint64_t> released;  ///< messages that this rank has released
};

class LimitRank : public Collectives {
 public:
  explicit LimitRank(const Place& place)
      : rank_(static_cast<std::size_t>(place.rank)),
        ranks_(static_cast<std::size_t>(place.ranks)),
        spins_(core_each(place.ranks)),
        memory_(JobMemory::open(place.job)) {
    for (int rank = 0; rank < place.ranks; ++rank) {
      memory_.reserve(rank, 0, kSourceOffset);
      std::byte* arena = memory_.arena(rank);
      lines_.push_back(reinterpret_cast<Lines*>(arena + kArenaTempOffset));
      sources_.push_back(reinterpret_cast<float*>(arena + kSourceOffset));
    }
    destinations_ = sources_;
  }

  void barrier() override {
    exchange();
    if (metric_ == Metric::cycle) exchange();
  }

  Buffers prepare(Op op, std::size_t bytes, Metric metric) override {
    op_ = op;
    metric_ = metric;
    exchanges_ = op == Op::barrier || (metric == Metric::loop && bytes < kExchangeBytes);
    if (exchanges_ || op == Op::probe) return {};
    count_ = bytes / sizeof(float);
    part_ = count_ / ranks_;
    const Counts counts = counts_of(op, count_, static_cast<int>(ranks_));
    const bool in_place = op == Op::all_reduce || op == Op::broadcast;
    const std::size_t gap = in_place ? 0 : (counts.source + kLineFloats - 1) / kLineFloats;
    for (std::size_t q = 0; q < ranks_; ++q) {
      destinations_[q] = sources_[q] + gap * kLineFloats;
    }
    touch(kSourceOffset + (gap * kLineFloats + counts.destination) * sizeof(float));
    return {{sources_[rank_], counts.source}, {destinations_[rank_], counts.destination}};
  }

  void open_channel(std::size_t bytes) override {
    metric_ = Metric::loop;
    count_ = bytes / sizeof(float);
    slots_ = std::clamp<std::uint64_t>(kSlotsBytes / bytes, kSlotsMin, kSlotsMax);
    touch(kSourceOffset + slots_ * slot_stride() * sizeof(float));
  }
  std::span<float> loan() override {
    const std::atomic<std::uint64_t>& released = lines_[1 - rank_]->released;
    std::uint64_t free;
    while ((free = slots_ - (sent_ - released.load(std::memory_order_acquire))) == 0) relax();
    slot_ = free == slots_ ? 0 : (slot_ + 1) % slots_;
    return slot(rank_, slot_);
  }
  void send() override {
    lines_[rank_]->sent.store(++sent_ * kSlotsMax + slot_, std::memory_order_release);
  }
  std::span<const float> receive() override {
    const std::atomic<std::uint64_t>& word = lines_[1 - rank_]->sent;
    std::uint64_t sent;
    while ((sent = word.load(std::memory_order_acquire)) / kSlotsMax == received_) relax();
    // Messages that this rank hasn't received yet are in consecutive slots.
    const std::uint64_t behind = sent / kSlotsMax - ++received_;
    return slot(1 - rank_, (sent % kSlotsMax + slots_ - behind) % slots_);
  }
  void release() override { lines_[rank_]->released.store(received_, std::memory_order_release); }

  void run() override {
    if (op_ == Op::probe) {
      round_trip();
    } else if (exchanges_) {
      spins_ ? exchange() : static_cast<void>(sched_yield());
    } else if (metric_ == Metric::cycle) {
      exchange();
      transfer();
      exchange();
    } else {
      transfer();
    }
  }

 private:
  static constexpr std::size_t kSourceOffset = 2 * kArenaTempOffset;
  static constexpr std::size_t kLineFloats = 16;

  std::span<float> slot(std::size_t rank, std::uint64_t index) const {
    return {sources_[rank] + index * slot_stride(), count_};
  }
  std::size_t slot_stride() const { return (count_ + kLineFloats - 1) / kLineFloats * kLineFloats; }

  /// Uses this rank's own memory up to `end` once, before measuring begins.
  void touch(std::size_t end) {
    if (end <= touched_) return;
    memory_.reserve(static_cast<int>(rank_), 0, end);
    std::memset(sources_[rank_], 0, end - kSourceOffset);
    touched_ = end;
  }

  void relax() const { spins_ ? pause_cpu() : static_cast<void>(sched_yield()); }

  void await(std::size_t rank) const {
    const std::atomic<std::uint32_t>& number = lines_[rank]->number;
    while (static_cast<std::int32_t>(number.load(std::memory_order_acquire) - number_) < 0) {
      relax();
    }
  }

  void exchange() {
    lines_[rank_]->number.store(++number_, std::memory_order_release);
    for (std::size_t i = 1; i < ranks_; ++i) await((rank_ + i) % ranks_);
  }

  void round_trip() {
    ++number_;
    if (rank_ != 0) await(0);
    lines_[rank_]->number.store(number_, std::memory_order_release);
    if (rank_ == 0) await(1);
  }

  void transfer() {
    switch (op_) {
      case Op::all_reduce: return reduce_slice();
      case Op::reduce_scatter:
        return reduce({.sources = sources_,
                       .source_begin = rank_ * part_,
                       .destinations = std::span(destinations_).subspan(rank_, 1),
                       .count = part_});
      case Op::all_gather: return copy_to_all(sources_[rank_], rank_ * part_, part_);
      case Op::all_to_all: return copy_parts();
      case Op::broadcast: {
        const std::size_t begin = std::min(count_, rank_ * slice());
        return copy_to_all(sources_[0] + begin, begin, std::min(count_ - begin, slice()));
      }
      case Op::barrier:
      case Op::channel:
      case Op::probe: return;
    }
  }

  /// Returns the size of a rank's slice. Slices begin on cache lines.
  std::size_t slice() const {
    const std::size_t even = (count_ + ranks_ - 1) / ranks_;
    return (even + kLineFloats - 1) / kLineFloats * kLineFloats;
  }

  void reduce_slice() {
    const std::size_t begin = std::min(count_, rank_ * slice());
    reduce({.sources = sources_,
            .source_begin = begin,
            .destinations = destinations_,
            .destination_begin = begin,
            .count = std::min(count_ - begin, slice())});
  }

  /// Copies `count` elements to all ranks, in blocks that remain in the first-level cache.
  void copy_to_all(const float* from, std::size_t to, std::size_t count) const {
    constexpr std::size_t kBlock = 4096;
    for (std::size_t at = 0; at < count; at += kBlock) {
      for (std::size_t i = 0; i < ranks_; ++i) {
        float* destination = destinations_[(rank_ + i) % ranks_] + to + at;
        if (destination != from + at) copy(destination, from + at, std::min(kBlock, count - at));
      }
    }
  }

  void copy_parts() const {
    for (std::size_t i = 0; i < ranks_; ++i) {
      const std::size_t q = (rank_ + i) % ranks_;
      copy(destinations_[rank_] + q * part_, sources_[q] + rank_ * part_, part_);
    }
  }

  void copy(float* to, const float* from, std::size_t count) const {
    const std::size_t bytes = count * sizeof(float);
    if (count_ * sizeof(float) < kPastCachesBytes) {
      std::memcpy(to, from, bytes);
    } else {
      copy_past_caches(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                       bytes);
    }
  }

  std::size_t rank_;
  std::size_t ranks_;
  bool spins_;
  JobMemory memory_;
  std::vector<Lines*> lines_;
  std::vector<float*> sources_;
  std::vector<float*> destinations_;
  std::uint32_t number_ = 0;
  std::uint64_t slots_ = kSlotsMin;
  std::uint64_t slot_ = 0;  ///< the slot of the message sent last
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::size_t touched_ = 0;

  Op op_ = Op::barrier;
  Metric metric_ = Metric::loop;
  bool exchanges_ = true;
  std::size_t count_ = 0;
  std::size_t part_ = 0;  ///< the size of a rank's part
};

}  // namespace

int main() {
  return run_rank([] {
    const Place place = Place::from_environment();
    LimitRank rank(place);
    pin(place.rank, place.ranks);
    serve(place.rank, place.ranks, rank);
  });
}
