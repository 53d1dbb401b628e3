/// A program in which each rank reports when it has met the others.

#include <cstdio>
#include <ctime>

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("entered %lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
  MPI_Finalize();
}
