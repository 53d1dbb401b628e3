/// Runs a rank of Open MPI or MPICH, whichever it was compiled for.

#include <mpi.h>

#include <array>

#include "bench/collectives/private_buffers.hpp"
#include "bench/collectives/rank.hpp"

namespace {

using namespace weft::bench;

class MpiRank : public Collectives {
 public:
  MpiRank() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~MpiRank() override { MPI_Finalize(); }
  MpiRank(const MpiRank&) = delete;
  MpiRank& operator=(const MpiRank&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  Buffers prepare(Op op, std::size_t bytes, Metric) override {
    op_ = op;
    const Buffers buffers = memory_.of(op, bytes, ranks_);
    source_ = buffers.source.data();
    destination_ = buffers.destination.data();
    count_ = static_cast<int>(bytes / sizeof(float));
    part_ = count_ / ranks_;
    return buffers;
  }

  void run() override {
    const MPI_Comm all = MPI_COMM_WORLD;
    switch (op_) {
      case Op::barrier: MPI_Barrier(all); break;
      case Op::all_reduce:
        MPI_Allreduce(MPI_IN_PLACE, destination_, count_, MPI_FLOAT, MPI_SUM, all);
        break;
      case Op::reduce_scatter:
        MPI_Reduce_scatter_block(source_, destination_, part_, MPI_FLOAT, MPI_SUM, all);
        break;
      case Op::all_gather:
        MPI_Allgather(source_, part_, MPI_FLOAT, destination_, part_, MPI_FLOAT, all);
        break;
      case Op::all_to_all:
        MPI_Alltoall(source_, part_, MPI_FLOAT, destination_, part_, MPI_FLOAT, all);
        break;
      case Op::broadcast: MPI_Bcast(destination_, count_, MPI_FLOAT, 0, all); break;
      case Op::channel:
      case Op::probe: break;
    }
  }

  void open_channel(std::size_t bytes) override {
    const Buffers buffers = memory_.of(Op::all_to_all, bytes, 1);
    source_ = buffers.source.data();
    destination_ = buffers.destination.data();
    count_ = static_cast<int>(bytes / sizeof(float));
  }
  std::span<float> loan() override { return {source_, static_cast<std::size_t>(count_)}; }
  void send() override { MPI_Send(source_, count_, MPI_FLOAT, 1 - rank_, 0, MPI_COMM_WORLD); }
  std::span<const float> receive() override {
    MPI_Recv(destination_, count_, MPI_FLOAT, 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return {destination_, static_cast<std::size_t>(count_)};
  }
  void release() override {}

 private:
  int rank_ = 0;
  int ranks_ = 1;
  PrivateBuffers memory_;
  Op op_ = Op::barrier;
  float* source_ = nullptr;
  float* destination_ = nullptr;
  int count_ = 0;
  int part_ = 0;
};

}  // namespace

int main() {
  return run_rank([] {
    MpiRank mpi;
    pin(mpi.rank(), mpi.ranks());
    serve(mpi.rank(), mpi.ranks(), mpi);
  });
}
