/// Runs a rank of Gloo over TCP, on the loopback device or at the address in WEFT_BENCH_ADDRESS.
/// The argument is "ring" or "bcube", the algorithm of all_reduce, or "poll", which selects the
/// older algorithms on sockets that each rank polls.

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <weft/tensor/error.hpp>

#include "bench/collectives/private_buffers.hpp"
#include "bench/collectives/rank.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

std::shared_ptr<gloo::rendezvous::Context> connect(const Place& place) {
  auto context = std::make_shared<gloo::rendezvous::Context>(place.rank, place.ranks);
  context->setTimeout(std::chrono::seconds(60));
  gloo::rendezvous::FileStore store(place.folder);
  gloo::transport::tcp::attr own;
  const char* const address = std::getenv("WEFT_BENCH_ADDRESS");
  own.hostname = address == nullptr ? "127.0.0.1" : address;
  auto device = gloo::transport::tcp::CreateDevice(own);
  context->connectFullMesh(store, device);
  return context;
}

class GlooRank : public Collectives {
 public:
  GlooRank(const Place& place, const std::string& way)
      : ranks_(place.ranks), context_(connect(place)), ring_(way == "ring"), polls_(way == "poll") {
    if (!polls_) return;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != place.rank) context_->getPair(rank)->setSync(true, true);
    }
    barrier_ = std::make_unique<gloo::BarrierAllToAll>(context_);
  }

  void barrier() override {
    if (polls_) return barrier_->run();
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  Buffers prepare(Op op, std::size_t bytes, Metric) override {
    op_ = op;
    buffers_ = memory_.of(op, bytes, ranks_);
    if (op == Op::reduce_scatter) buffers_.destination = buffers_.source.first(part());
    if (bytes != prepared_bytes_ || op != prepared_op_) algorithm_ = make_algorithm();
    prepared_bytes_ = bytes;
    prepared_op_ = op;
    return buffers_;
  }

  void run() override {
    if (op_ == Op::barrier) {
      barrier();
    } else if (algorithm_) {
      algorithm_->run();
    } else if (op_ == Op::all_reduce) {
      all_reduce();
    } else if (op_ == Op::all_gather) {
      gather<gloo::AllgatherOptions, gloo::allgather>();
    } else if (op_ == Op::all_to_all) {
      gather<gloo::AlltoallOptions, gloo::alltoall>();
    } else {
      broadcast();
    }
  }

 private:
  std::size_t part() const { return buffers_.source.size() / static_cast<std::size_t>(ranks_); }

  /// Returns one of Gloo's older algorithms for the op, or null if a newer algorithm does the op.
  std::unique_ptr<gloo::Algorithm> make_algorithm() {
    float* source = buffers_.source.data();
    float* destination = buffers_.destination.data();
    const int count = static_cast<int>(buffers_.source.size());
    if (!polls_) return nullptr;
    switch (op_) {
      case Op::all_reduce:
        return std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_,
                                                                       std::vector{source}, count);
      case Op::reduce_scatter:
        return std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
            context_, std::vector{source}, count,
            std::vector<int>(static_cast<std::size_t>(ranks_), static_cast<int>(part())));
      case Op::all_gather:
        return std::make_unique<gloo::AllgatherRing<float>>(
            context_, std::vector<const float*>{source}, destination, count);
      case Op::broadcast:
        return std::make_unique<gloo::BroadcastOneToAll<float>>(context_, std::vector{source},
                                                                count);
      case Op::barrier: return nullptr;
      default: fail(Errc::unavailable, "Gloo's older algorithms have no {}", to_string(op_));
    }
  }

  void all_reduce() {
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(ring_ ? Algorithm::RING : Algorithm::BCUBE);
    options.setOutput(buffers_.source.data(), buffers_.source.size());
    options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t count) {
      gloo::sum<float>(out, a, b, count);
    });
    gloo::allreduce(options);
  }

  template <typename Options, void (*kRun)(Options&)>
  void gather() {
    Options options(context_);
    options.setInput(buffers_.source.data(), buffers_.source.size());
    options.setOutput(buffers_.destination.data(), buffers_.destination.size());
    kRun(options);
  }

  void broadcast() {
    gloo::BroadcastOptions options(context_);
    options.setOutput(buffers_.source.data(), buffers_.source.size());
    options.setRoot(0);
    gloo::broadcast(options);
  }

  int ranks_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  bool ring_;
  bool polls_;
  std::unique_ptr<gloo::Algorithm> barrier_;
  std::unique_ptr<gloo::Algorithm> algorithm_;
  Op prepared_op_ = Op::barrier;
  std::size_t prepared_bytes_ = 0;
  PrivateBuffers memory_;
  Buffers buffers_;
  Op op_ = Op::barrier;
};

}  // namespace

int main(int, char** argv) {
  return run_rank([argv] {
    const Place place = Place::from_environment();
    GlooRank rank(place, argv[1]);
    pin(place.rank, place.ranks);
    serve(place.rank, place.ranks, rank);
  });
}
