/// Runs a rank of weft: each process has a Communicator, with tensors in the arenas.

#include <cstring>
#include <optional>
#include <string>

#include "bench/collectives/rank.hpp"
#include "transport/channel/channel.hpp"
#include "transport/collectives/communicator.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

/// The channels between ranks 0 and 1, one in each direction.
class ChannelPair {
 public:
  /// Opens the channels. `barrier` must synchronize both ranks.
  template <typename Barrier>
  ChannelPair(const Place& place, const JobMemory& memory, WaitPolicy policy, std::size_t bytes,
              Barrier&& barrier)
      : bytes_(bytes),
        out_(Channel::create(
            {.job = place.job, .name = std::to_string(place.rank), .slot_bytes = bytes})),
        in_(open_after(barrier, place)),
        writer_(out_, policy, &memory),
        reader_(in_, policy, &memory) {
    barrier();
    Segment::remove(out_.segment().name());
  }

  std::size_t bytes() const { return bytes_; }
  std::span<float> loan() {
    const std::span<std::byte> frame = writer_.loan(bytes_);
    return {reinterpret_cast<float*>(frame.data()), bytes_ / sizeof(float)};
  }
  void send() { writer_.publish(); }
  std::span<const float> receive() {
    frame_ = reader_.receive();
    return {reinterpret_cast<const float*>(frame_->bytes().data()), bytes_ / sizeof(float)};
  }
  void release() { frame_.reset(); }

 private:
  template <typename Barrier>
  static Channel open_after(Barrier&& barrier, const Place& place) {
    barrier();
    return Channel::open(place.job, std::to_string(1 - place.rank));
  }

  std::size_t bytes_;
  Channel out_;
  Channel in_;
  ChannelWriter writer_;
  ChannelReader reader_;
  std::optional<ChannelFrame> frame_;
};

class WeftRank : public Collectives {
 public:
  WeftRank(const Place& place, WaitPolicy policy)
      : place_(place),
        memory_(JobMemory::open(place.job)),
        policy_(policy),
        mesh_({place.ranks}, {"rank"}),
        board_(Board::anonymous({.job = place.job, .num_chips = place.ranks})),
        communicator_(memory_, mesh_, place.rank, board_.device(place.rank), policy),
        barrier_(prepare_barrier()),
        call_(prepare_barrier()) {}

  void barrier() override { run(barrier_); }

  Buffers prepare(Op op, std::size_t bytes, Metric) override {
    const Counts counts = counts_of(op, bytes / sizeof(float), place_.ranks);
    const bool in_place = op == Op::all_reduce || op == Op::broadcast;
    const std::size_t source = kArenaTempOffset;
    const std::size_t destination =
        in_place ? source : source + (counts.source * sizeof(float) + 63) / 64 * 64;
    const std::size_t end = destination + counts.destination * sizeof(float);
    if (end > touched_) touch(end);
    CollectiveCall call = make_call(op, counts);
    call.source = source;
    call.destination = destination;
    call_ = communicator_.prepare(call);
    return {{floats_at(source), counts.source}, {floats_at(destination), counts.destination}};
  }

  void run() override { run(call_); }

  void open_channel(std::size_t bytes) override {
    if (channels_ && channels_->bytes() == bytes) return;
    channels_.reset();
    channels_.emplace(place_, memory_, policy_, bytes, [this] { barrier(); });
  }
  std::span<float> loan() override { return channels_->loan(); }
  void send() override { channels_->send(); }
  std::span<const float> receive() override { return channels_->receive(); }
  void release() override { channels_->release(); }

 private:
  PreparedCall prepare_barrier() {
    return communicator_.prepare(
        {.kind = CollectiveKind::barrier, .atoms = mesh_.axis_atoms(0), .name = "barrier"});
  }

  void run(const PreparedCall& call) {
    try {
      communicator_.run(call);
    } catch (const std::exception& error) {
      memory_.abort(error.what());
      throw;
    }
  }

  float* floats_at(std::size_t offset) const {
    return reinterpret_cast<float*>(memory_.arena(place_.rank) + offset);
  }

  /// Uses this rank's own memory up to `end` once, before measuring begins.
  void touch(std::size_t end) {
    memory_.reserve(place_.rank, 0, end);
    std::memset(memory_.arena(place_.rank) + kArenaTempOffset, 0, end - kArenaTempOffset);
    touched_ = end;
  }

  CollectiveCall make_call(Op op, const Counts& counts) const {
    CollectiveCall call{.atoms = mesh_.axis_atoms(0), .name = to_string(op)};
    call.count = static_cast<std::int64_t>(std::min(counts.source, counts.destination));
    switch (op) {
      case Op::all_reduce: call.kind = CollectiveKind::all_reduce; break;
      case Op::reduce_scatter: call.kind = CollectiveKind::reduce_scatter; break;
      case Op::all_gather: call.kind = CollectiveKind::all_gather; break;
      case Op::all_to_all:
        call.kind = CollectiveKind::all_to_all;
        call.shape = Shape{call.count};
        break;
      case Op::broadcast:
        call.kind = CollectiveKind::broadcast;
        call.from = {0};
        break;
      case Op::barrier: break;
      case Op::channel:
      case Op::probe: fail(Errc::unavailable, "weft has no {}", to_string(op));
    }
    return call;
  }

  Place place_;
  JobMemory memory_;
  WaitPolicy policy_;
  Mesh mesh_;
  Board board_;  ///< the communicators of a job share a board, which the bench makes
  Communicator communicator_;
  PreparedCall barrier_;
  PreparedCall call_;
  std::optional<ChannelPair> channels_;
  std::size_t touched_ = 0;
};

}  // namespace

int main() {
  return run_rank([] {
    const Place place = Place::from_environment();
    const WaitPolicy policy =
        WaitPolicy::for_threads(place.ranks, std::chrono::milliseconds(60'000));
    pin(place.rank, place.ranks);
    WeftRank rank(place, policy);
    serve(place.rank, place.ranks, rank);
  });
}
