/// A rank of weft: a Communicator per process, tensors in the arenas.

#include <cstring>

#include <weft/bench/collectives/rank.hpp>
#include <weft/transport/communicator.hpp>

namespace {

using namespace weft;
using namespace weft::bench;

class WeftRank : public Collectives {
 public:
  WeftRank(const Place& place, WaitPolicy policy)
      : place_(place),
        memory_(JobMemory::open(place.job)),
        mesh_({place.ranks}, {"rank"}),
        communicator_(memory_, mesh_, place.rank, {}, policy),
        barrier_{.kind = CollectiveKind::barrier, .atoms = mesh_.axis_atoms(0), .name = "barrier"} {
  }

  void barrier() override { run(barrier_); }

  Buffers prepare(Op op, std::size_t bytes, Metric) override {
    const Counts counts = counts_of(op, bytes / sizeof(float), place_.ranks);
    const bool in_place = op == Op::all_reduce || op == Op::broadcast;
    const std::size_t source = kArenaTempOffset;
    const std::size_t destination =
        in_place ? source : source + (counts.source * sizeof(float) + 63) / 64 * 64;
    const std::size_t end = destination + counts.destination * sizeof(float);
    if (end > touched_) touch(end);
    call_ = make_call(op, counts);
    call_.source = source;
    call_.destination = destination;
    return {{floats_at(source), counts.source}, {floats_at(destination), counts.destination}};
  }

  void run() override { run(call_); }

 private:
  void run(const CollectiveCall& call) {
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

  /// By its owner, before anybody measures.
  void touch(std::size_t end) {
    memory_.reserve(place_.rank, 0, end);
    std::memset(memory_.arena(place_.rank) + kArenaTempOffset, 0, end - kArenaTempOffset);
    touched_ = end;
  }

  CollectiveCall make_call(Op op, const Counts& counts) const {
    CollectiveCall call = barrier_;
    call.name = to_string(op);
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
  Mesh mesh_;
  Communicator communicator_;
  CollectiveCall barrier_;
  CollectiveCall call_;
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
