#include "bench/collectives/implementations.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "bench/collectives/rank.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::bench {
namespace {

using Words = std::vector<std::string>;

const std::vector<Op> kCollectives = {Op::barrier,    Op::all_reduce, Op::reduce_scatter,
                                      Op::all_gather, Op::all_to_all, Op::broadcast};
const std::vector<Op> kAllOps = {Op::barrier,    Op::all_reduce, Op::reduce_scatter, Op::all_gather,
                                 Op::all_to_all, Op::broadcast,  Op::channel};

/// Environment variables with which malloc uses huge pages for large buffers and keeps freed
/// memory.
const Process::Environment kKeepMemory = {{"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                                          {"MALLOC_TRIM_THRESHOLD_", "2147483647"},
                                          {"MALLOC_TOP_PAD_", "67108864"},
                                          {"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}};

/// The least room, in bytes, for a tensor in an arena. A channel with small messages fills this
/// room with many slots.
constexpr std::size_t kTensorBytesMin = 65536;

/// Returns the path of a program in the folder of this program.
std::string program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

/// Returns the size of an arena that holds a source and a destination, or a channel's slots.
std::size_t arena_capacity(std::size_t bytes_max) {
  const std::size_t bytes = 3 * std::max(bytes_max, kTensorBytesMin) + 8 * kArenaTempOffset;
  return (bytes + kArenaCapacityUnit - 1) / kArenaCapacityUnit * kArenaCapacityUnit;
}

template <typename T>
std::vector<T> operator+(std::vector<T> list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

/// Launches Open MPI. Its ranks bind themselves to cores.
Launch open_mpi(int ranks, const Words& settings) {
  return {.name = "ompi",
          .command = Words{"mpirun.openmpi", "-n", fmt::to_string(ranks), "--allow-run-as-root",
                           "--oversubscribe", "--bind-to", "none"} +
                     settings + Words{program("bench_rank_ompi")},
          .rank_each = false,
          .ops = kAllOps};
}

Launch tuned(Launch launch, const std::string& setting) {
  launch.name += "-tuned";
  launch.setting = setting;
  launch.environment = kKeepMemory;
  return launch;
}

std::vector<Launch> open_mpi_tuned(int ranks) {
  const Words kShared = {"--mca", "pml", "ob1", "--mca", "btl", "vader,self"};
  const Words kRing = {"--mca",
                       "coll_tuned_use_dynamic_rules",
                       "1",
                       "--mca",
                       "coll_tuned_allreduce_algorithm",
                       "4",
                       "--mca",
                       "coll_tuned_allreduce_algorithm_segmentsize",
                       "1048576"};
  const Words kSharedCollectives = {"--mca", "coll_sm_priority", "100"};
  const Words kYield = {"--mca", "mpi_yield_when_idle", "1"};
  std::vector<Launch> launches = {
      tuned(open_mpi(ranks, kShared), "memory"),
      tuned(open_mpi(ranks, kShared + kRing), "memory, ring"),
      tuned(open_mpi(ranks, kShared + kSharedCollectives), "memory, coll sm")};
  if (!core_each(ranks)) {
    launches.push_back(tuned(open_mpi(ranks, kShared + kYield), "memory, yield"));
    launches.push_back(
        tuned(open_mpi(ranks, kShared + kYield + kSharedCollectives), "memory, yield, coll sm"));
  }
  return launches;
}

Launch mpich(int ranks) {
  return {.name = "mpich",
          .command = {"mpirun.mpich", "-n", fmt::to_string(ranks), program("bench_rank_mpich")},
          .rank_each = false,
          .ops = kAllOps};
}

Launch gloo(const std::string& way, const std::vector<Op>& ops) {
  return {.name = "gloo",
          .setting = way,
          .command = {program("bench_rank_gloo"), way},
          .environment = kKeepMemory,
          .ops = ops};
}

/// Returns the launches of Gloo. reduce_scatter uses one of Gloo's older algorithms with sockets
/// that each rank polls. If a thread of Gloo polled the sockets, this algorithm's results of 16 MiB
/// were wrong.
std::vector<Launch> gloo_ways(int) {
  return {
      gloo("ring", {Op::barrier, Op::all_reduce, Op::all_gather, Op::all_to_all, Op::broadcast}),
      gloo("bcube", {Op::all_reduce}),
      gloo("poll",
           {Op::barrier, Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast})};
}

Launch torch(int) {
  return {.name = "torch",
          .command = {"/usr/bin/python3", program("bench_rank_torch.py")},
          .environment = kKeepMemory + Process::Environment{{"OPENBLAS_CORETYPE", "SkylakeX"},
                                                            {"OMP_WAIT_POLICY", "passive"},
                                                            {"OMP_NUM_THREADS", "1"}},
          .ops = {Op::barrier, Op::all_reduce, Op::all_gather, Op::all_to_all, Op::broadcast}};
}

Launch message_queue(int) {
  return {.name = "message-queue",
          .command = {program("bench_rank_message_queue")},
          .environment = kKeepMemory,
          .ops = {Op::channel}};
}

Launch iceoryx(int) {
  return {.name = "iceoryx",
          .command = {program("bench_rank_iceoryx")},
          .daemon = {"iox-roudi", "-c", program("bench_iceoryx.toml"), "-l", "error", "-m", "off"},
          .ops = {Op::channel}};
}

struct Peer {
  std::string name;
  std::string program;
  std::vector<Launch> (*launches)(int ranks);
};

/// Returns a list with one launch, for an implementation with a single setting.
template <Launch (*kLaunch)(int)>
std::vector<Launch> one(int ranks) {
  return {kLaunch(ranks)};
}

const std::vector<Peer>& peers() {
  static const std::vector<Peer> all = {
      {"ompi", "bench_rank_ompi", [](int ranks) { return std::vector{open_mpi(ranks, {})}; }},
      {"ompi-tuned", "bench_rank_ompi", open_mpi_tuned},
      {"mpich", "bench_rank_mpich", one<mpich>},
      {"mpich-tuned", "bench_rank_mpich",
       [](int ranks) { return std::vector{tuned(mpich(ranks), "memory")}; }},
      {"gloo", "bench_rank_gloo", gloo_ways},
      {"torch", "bench_rank_torch.py", one<torch>},
      {"message-queue", "bench_rank_message_queue", one<message_queue>},
      {"iceoryx", "bench_rank_iceoryx", one<iceoryx>},
  };
  return all;
}

}  // namespace

Launch weft_launch(std::size_t bytes_max) {
  return {.name = "weft",
          .command = {program("bench_rank_weft")},
          .arena_capacity = arena_capacity(bytes_max),
          .ops = kAllOps};
}

Launch limit_launch(std::size_t bytes_max) {
  return {.name = "limit",
          .command = {program("bench_rank_limit")},
          .arena_capacity = arena_capacity(bytes_max),
          .ops = kAllOps};
}

std::vector<std::string> peer_names() {
  std::vector<std::string> names;
  for (const Peer& peer : peers()) names.push_back(peer.name);
  return names;
}

std::vector<Launch> peer_launches(std::span<const std::string> names, int ranks) {
  std::vector<Launch> launches;
  for (const std::string& name : names) {
    const auto peer = std::ranges::find(peers(), name, &Peer::name);
    if (peer == peers().end()) {
      fail(Errc::invalid_argument, "peer '{}': expected one of {}", name,
           fmt::join(peer_names(), ", "));
    }
    if (!std::filesystem::exists(program(peer->program))) {
      fmt::print(stderr, "left out: {}: {} wasn't built\n", name, peer->program);
      continue;
    }
    for (Launch& launch : peer->launches(ranks)) launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace weft::bench
