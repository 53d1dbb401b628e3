#include "actors/worker/state_passing.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "actors/runtime/buffer_pool.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/passes/partition.hpp"
#include "transport/state/state_directory.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The longest time between two checks whether the job was aborted.
constexpr std::chrono::milliseconds kSlice{10};

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Returns the number of the wire from the chip at `position` to its twin on `host`.
int wire_to_twin(const Wires& wires, const Mesh& mesh, int position, int host) {
  const auto chip =
      static_cast<std::uint32_t>(host * chips_per_host(mesh) + chip_on_host(mesh, position));
  const auto peers = wires.peers();
  const auto found =
      std::ranges::find_if(peers, [&](const WirePeer& peer) { return peer.end.chip == chip; });
  return static_cast<int>(found - peers.begin());
}

/// The wire from one chip to its twin.
struct TwinWire {
  Wires& wires;
  std::size_t local_index;
  int wire;
  bool is_told_lost = false;

  bool is_idle() const {
    const WireStatus& status = wires.status(wire);
    return status.sends == 0 && status.receives == 0;
  }
};

class StatePass {
 public:
  StatePass(const Start& start, const Assignment& assignment, const Mesh& mesh,
            const std::vector<int>& positions, JobMemory& memory, const HostWires& wires)
      : step_(start.step),
        timeout_(assignment.timeout_ms),
        mesh_(mesh),
        positions_(positions),
        first_chip_(chip_on_host(mesh, positions.front())),
        memory_(memory),
        wires_(wires) {}

  /// Sends the state to the twins on all of these hosts at the same time.
  void send(const std::vector<int>& hosts) {
    const auto begin = Clock::now();
    const KeptState kept(memory_, mesh_, static_cast<int>(positions_.size()), step_);
    const auto worker = static_cast<std::size_t>(first_chip_) / positions_.size();
    std::vector<StateEntry> entries;
    for (const KeptTensor& tensor : kept.tensors()) {
      entries.push_back({.name = tensor.name,
                         .type = tensor.type,
                         .sharding = tensor.sharding,
                         .offset = tensor.offsets[worker],
                         .kind = tensor.kind});
    }
    const std::vector<std::byte> table =
        encode_state_table(entries, kept.loaders(worker), kept.commands(worker));
    const std::uint64_t size = table.size();
    std::vector<TwinWire> twins;
    for (const int host : hosts) std::ranges::copy(twins_on(host), std::back_inserter(twins));
    std::int64_t bytes = 0;
    for (const TwinWire& twin : twins) {
      const auto post = [&](std::span<const std::byte> part) {
        if (!part.empty()) twin.wires.send(twin.wire, part);
      };
      post(std::as_bytes(std::span(&size, 1)));
      post(table);
      for (const KeptTensor& tensor : kept.tensors()) {
        const std::int64_t shard = shard_bytes(tensor.type, tensor.sharding);
        post({kept.shard(tensor, positions_[twin.local_index]), static_cast<std::size_t>(shard)});
        bytes += shard;
      }
    }
    wait(twins);
    logger("weft.worker")
        ->info("sent {:.2f} MiB of state of step {} to {} hosts in {:.3f} s", mib(bytes), step_,
               hosts.size(), seconds_since(begin));
  }

  void receive(int host) {
    const auto begin = Clock::now();
    std::vector<TwinWire> twins = twins_on(host);
    std::vector<std::uint64_t> sizes(twins.size());
    for (std::size_t i = 0; i < twins.size(); ++i) {
      twins[i].wires.receive(twins[i].wire, std::as_writable_bytes(std::span(&sizes[i], 1)));
    }
    wait(twins);
    std::vector<std::vector<std::byte>> tables;
    for (std::size_t i = 0; i < twins.size(); ++i) {
      if (sizes[i] == 0 || sizes[i] > kDirectoryBytes) {
        fail(Errc::corrupt, "host {} sent a state table of {} bytes", host, sizes[i]);
      }
      tables.emplace_back(sizes[i]);
      twins[i].wires.receive(twins[i].wire, tables.back());
    }
    wait(twins);
    const StateTable table = store(tables, host);
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < twins.size(); ++i) {
      for (const StateEntry& entry : table.tensors) {
        bytes += receive_shard(twins[i], chip_on_host(mesh_, positions_[i]), entry);
      }
    }
    wait(twins);
    logger("weft.worker")
        ->info("received {:.2f} MiB of state of step {} from host {} in {:.3f} s", mib(bytes),
               step_, host, seconds_since(begin));
  }

 private:
  std::vector<TwinWire> twins_on(int host) const {
    std::vector<TwinWire> twins;
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      Wires& wires = wires_.of(i);
      twins.push_back({wires, i, wire_to_twin(wires, mesh_, positions_[i], host)});
    }
    return twins;
  }

  std::int64_t shard_bytes(const TensorType& type, const Sharding& sharding) const {
    return chip_type(type, sharding, mesh_).bytes();
  }

  /// Checks the received tables and writes them to this worker's directory. Returns the table.
  StateTable store(const std::vector<std::vector<std::byte>>& tables, int host) {
    const bool are_equal =
        std::ranges::all_of(tables, [&](const auto& table) { return table == tables.front(); });
    if (!are_equal) {
      fail(Errc::corrupt, "the chips of a worker of host {} sent different state tables", host);
    }
    const StateTable sent = decode_state_table(tables.front(), mesh_);
    StateDirectory directory(memory_, mesh_, first_chip_);
    directory.clear();  // an earlier try may have left a directory in this memory
    directory.write(step_, sent.tensors, 1, sent.loaders, sent.commands);
    return *directory.read(step_);
  }

  std::int64_t receive_shard(const TwinWire& twin, int chip, const StateEntry& entry) {
    const std::int64_t bytes = shard_bytes(entry.type, entry.sharding);
    const BufferPool::Range block = BufferPool::block(entry.offset, bytes);
    memory_.reserve(chip, block.begin, block.end - block.begin);
    if (bytes > 0) {
      twin.wires.receive(twin.wire,
                         {memory_.arena(chip) + entry.offset, static_cast<std::size_t>(bytes)});
    }
    return bytes;
  }

  /// Waits until all transfers have ended. A lost wire isn't an error here, because only the
  /// trainer decides who is lost: the trainer is told, and the wait lasts until the job is aborted.
  void wait(std::vector<TwinWire>& twins) {
    Clock::time_point deadline = Clock::now() + timeout_;
    for (;;) {
      bool has_moved = false;
      const TwinWire* awaited = nullptr;
      for (TwinWire& twin : twins) {
        has_moved = twin.wires.progress() || has_moved;
        if (!twin.is_idle()) awaited = &twin;
        const bool is_lost = twin.wires.status(twin.wire).state == WireState::lost;
        if (is_lost && !std::exchange(twin.is_told_lost, true)) {
          wires_.tell_lost(twin.local_index, twin.wire);
        }
      }
      if (awaited == nullptr) return;
      if (memory_.aborted()) fail(Errc::peer_lost, "{}", memory_.abort_reason());
      const Clock::time_point now = Clock::now();
      if (has_moved) {
        deadline = now + timeout_;
        continue;
      }
      if (now >= deadline) {
        fail(Errc::timeout,
             "the state of step {} wasn't passed on: {} has taken and sent nothing for "
             "backend.timeout_s = {}: raise it, or see the log of that worker",
             step_, to_string(awaited->wires.peers()[static_cast<std::size_t>(awaited->wire)].end),
             static_cast<double>(timeout_.count()) / 1000);
      }
      awaited->wires.wait(kSlice);
    }
  }

  const std::uint64_t step_;
  const std::chrono::milliseconds timeout_;
  const Mesh& mesh_;
  const std::vector<int>& positions_;
  const int first_chip_;
  JobMemory& memory_;
  const HostWires& wires_;
};

}  // namespace

StateSource pass_state(const Start& start, const Assignment& assignment, const Mesh& mesh,
                       const std::vector<int>& positions, JobMemory& memory, const HostWires& wires,
                       const Recorder& recorder) {
  if (start.donors.empty()) return StateSource::host;
  const auto here = static_cast<std::size_t>(host_of(mesh, positions.front()));
  StatePass pass(start, assignment, mesh, positions, memory, wires);
  const auto begin = [&] {
    recorder.state(ActorState::loading);
  };  // a loading worker hangs only if it uses no CPU time
  if (start.donors.at(here) >= 0) {
    begin();
    pass.receive(start.donors[here]);
    return StateSource::worker;
  }
  std::vector<int> takers;
  for (std::size_t host = 0; host < start.donors.size(); ++host) {
    if (start.donors[host] == static_cast<int>(here)) takers.push_back(static_cast<int>(host));
  }
  if (takers.empty()) return StateSource::host;
  begin();
  pass.send(takers);
  return StateSource::host;
}

}  // namespace weft
