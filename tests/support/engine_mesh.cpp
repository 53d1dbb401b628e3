#include "tests/support/engine_mesh.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "chips/cpu/executor.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/program/element.hpp"

namespace weft::testing {
namespace {

constexpr std::size_t kArenaCapacity = std::size_t{64} << 20;

constexpr std::size_t kPadding = std::numeric_limits<std::size_t>::max();

/// Returns for each element of a position's shard its row-major index in the global tensor;
/// kPadding for elements of the padding.
std::vector<std::size_t> shard_indices(const Sharding& sharding, const Mesh& mesh, int position,
                                       const Shape& global) {
  const auto local = sharding.local_shape(mesh, global);
  const auto offsets = sharding.offsets(mesh, position, global);
  std::vector<std::size_t> indices{0};
  for (int dim = 0; dim < global.size(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    std::vector<std::size_t> next;
    for (const std::size_t index : indices) {
      for (std::int64_t i = 0; i < local[d]; ++i) {
        const bool inside = index != kPadding && offsets[d] + i < global[dim];
        next.push_back(inside ? index * static_cast<std::size_t>(global[dim]) +
                                    static_cast<std::size_t>(offsets[d] + i)
                              : kPadding);
      }
    }
    indices = std::move(next);
  }
  return indices;
}

/// Returns the offset of the next buffer, and moves `end` behind the buffer to a multiple of 64,
/// which plans need.
std::uint64_t take(std::uint64_t& end, const TensorType& type) {
  const std::uint64_t begin = end;
  end += (static_cast<std::uint64_t>(type.bytes()) + 63) / 64 * 64;
  return begin;
}

}  // namespace

std::vector<Mesh> small_meshes() {
  return {Mesh({1}, {"a"}),
          Mesh({2}, {"a"}),
          Mesh({3}, {"a"}),
          Mesh({4}, {"a"}),
          Mesh({2, 2}, {"a", "b"}, {2, 0, 3, 1}),
          Mesh({6}, {"a"}),
          Mesh({2, 4}, {"a", "b"}),
          Mesh({2, 2, 2}, {"a", "b", "c"}, {7, 6, 5, 4, 3, 2, 1, 0}),
          HybridMesh{{2, 2}, {2, 1}, {"a", "b"}}.mesh(),
          HybridMesh{{3}, {2}, {"a"}}.mesh()};
}

std::unique_ptr<Engine> make_cpu_engine(EngineSetup setup) {
  return std::make_unique<Executor>(setup.memory, setup.mesh, setup.position, setup.board,
                                    setup.policy, setup.local_index, std::move(setup.network));
}

EngineMesh::EngineMesh(const Mesh& mesh, const EngineMeshOptions& options)
    : mesh_(options.network ? mesh : mesh.with_dcn_atoms(0)) {
  const int per_host = chips_per_host(mesh_);
  for (int host = 0; host < mesh_.size() / per_host; ++host) {
    memories_.push_back(JobMemory::anonymous(
        {.job = std::string(32, '0'), .num_chips = per_host, .arena_capacity = kArenaCapacity}));
  }
  const WaitPolicy policy = WaitPolicy::for_threads(mesh.size(), options.timeout);
  const int chips_each = options.chips_per_worker > 0 ? options.chips_per_worker : mesh.size();
  for (int position = 0; position < mesh_.size(); ++position) {
    JobMemory& memory = memories_[static_cast<std::size_t>(host_of(mesh_, position))];
    engines_.push_back(options.make(
        {.memory = memory,
         .mesh = mesh_,
         .position = position,
         .local_index = mesh_.device_at(position) % chips_each,
         .policy = policy,
         .engines = engines_,
         .network = options.network ? options.network(memory, mesh_, position, policy) : nullptr}));
  }
}

MeshPlan EngineMesh::load(const Plan& plan, bool donates) {
  MeshPlan loaded;
  loaded.plan = plan;
  std::uint64_t end = memory().buffers_offset();
  for (const ProgramInput& input : plan.program.inputs) {
    loaded.buffers.inputs.push_back(take(end, plan.program.type(input.value)));
  }
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    const ProgramOutput& output = plan.program.outputs[i];
    const bool is_over_input = donates && plan.donated[i];
    loaded.buffers.outputs.push_back(
        is_over_input ? loaded.buffers.inputs[static_cast<std::size_t>(output.updates)]
                      : take(end, plan.program.type(output.value)));
  }
  for (int position = 0; position < mesh_.size(); ++position) {
    engine(position).reserve(memory().buffers_offset(), end - memory().buffers_offset());
    loaded.chips.push_back(engine(position).load(plan));
  }
  return loaded;
}

void EngineMesh::write_inputs(const MeshPlan& loaded, std::span<const Elements> inputs) {
  for (int position = 0; position < mesh_.size(); ++position) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorType& type = loaded.plan.input_types[i];
      const auto indices =
          shard_indices(loaded.plan.program.inputs[i].sharding, mesh_, position, type.shape);
      const std::size_t size = indices.size() * static_cast<std::size_t>(byte_size(type.dtype));
      engine(position).upload(loaded.buffers.inputs[i], size, [&](std::byte* bytes) {
        for (const std::size_t index : indices) {
          const double padding = is_floating(type.dtype) ? std::nan("") : 1;
          store_element(type.dtype, index == kPadding ? padding : inputs[i][index], bytes);
          bytes += byte_size(type.dtype);
        }
      });
    }
  }
}

void EngineMesh::run_one_thread(const MeshPlan& loaded) {
  std::vector<int> running;
  for (int position = 0; position < mesh_.size(); ++position) {
    engine(position).start(loaded.chips[static_cast<std::size_t>(position)], step_, loaded.buffers);
    running.push_back(position);
  }
  std::minstd_rand random(static_cast<unsigned>(step_));
  while (!running.empty()) {
    const auto next = running.begin() + static_cast<std::ptrdiff_t>(random() % running.size());
    if (engine(*next).poll()) running.erase(next);
  }
}

void EngineMesh::run_threads(const MeshPlan& loaded) {
  std::vector<std::jthread> threads;
  for (int position = 0; position < mesh_.size(); ++position) {
    threads.emplace_back([this, position, &loaded] {
      try {
        engine(position).run(loaded.chips[static_cast<std::size_t>(position)], step_,
                             loaded.buffers);
      } catch (const Error& error) {
        for (JobMemory& memory : memories_) memory.abort(error.what());
        ADD_FAILURE() << "position " << position << ": " << error.what();
      }
    });
  }
}

EngineMesh::Outputs EngineMesh::run(const MeshPlan& loaded, std::span<const Elements> inputs,
                                    Schedule schedule) {
  write_inputs(loaded, inputs);
  ++step_;
  if (schedule == Schedule::one_thread) {
    run_one_thread(loaded);
  } else {
    run_threads(loaded);
  }
  Outputs outputs;
  const Program& program = loaded.plan.program;
  for (int position = 0; position < mesh_.size(); ++position) {
    auto& chip = outputs.emplace_back();
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const std::int64_t size = program.type(program.outputs[i].value).bytes();
      chip.emplace_back(static_cast<std::size_t>(size));
      engine(position).download(loaded.buffers.outputs[i], chip.back());
    }
  }
  return outputs;
}

std::vector<Elements> join(const Plan& plan, const Mesh& mesh, const EngineMesh::Outputs& outputs) {
  std::vector<Elements> result;
  for (std::size_t i = 0; i < plan.output_types.size(); ++i) {
    const TensorType& type = plan.output_types[i];
    const auto size = static_cast<std::size_t>(byte_size(type.dtype));
    Elements& elements = result.emplace_back(static_cast<std::size_t>(type.num_elements()));
    std::vector<const std::byte*> seen(elements.size(), nullptr);
    for (int position = 0; position < mesh.size(); ++position) {
      const std::byte* bytes = outputs[static_cast<std::size_t>(position)][i].data();
      for (const std::size_t index :
           shard_indices(plan.program.outputs[i].sharding, mesh, position, type.shape)) {
        if (index == kPadding) {
          bytes += size;
          continue;
        }
        if (seen[index] != nullptr) {
          EXPECT_EQ(std::memcmp(seen[index], bytes, size), 0)
              << "output " << i << " at position " << position << " differs from another copy";
        }
        seen[index] = bytes;
        elements[index] = load_element(type.dtype, bytes);
        bytes += size;
      }
    }
  }
  return result;
}

}  // namespace weft::testing
