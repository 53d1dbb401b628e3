/// Prints sizes, hashes and costs of the plans of random programs, one per line: plan_dump
/// [COUNT=2000]. dump.sh runs it.

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <xxhash.h>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/plan/step_cost.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/random_training.hpp"

int main(int argc, char** argv) {
  using namespace weft;
  const auto count = static_cast<std::uint64_t>(argc > 1 ? std::atoll(argv[1]) : 2000);
  const std::vector<Mesh> meshes = testing::small_meshes();
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    testing::Random random(seed);
    const Mesh& mesh = meshes[random.below(meshes.size())];
    const Program program = seed % 4 == 0   ? testing::random_program(mesh, random)
                            : seed % 4 == 1 ? testing::random_program_of_narrow(mesh, random)
                            : seed % 4 == 2 ? testing::random_program_of_shards(mesh, random)
                                            : testing::random_training(mesh, random);
    const Plan plan = compile(program, mesh, kCpuTarget);
    const std::string text = to_text(plan.program, mesh);
    const StepCost cost = run_cost(plan, mesh);
    fmt::print(
        "{} {} ops {} steps {} text {:016x} temporaries {} of {} shared {} flops {} read {} "
        "written {} traffic {}\n",
        seed, mesh.to_string(), plan.program.num_ops(), plan.steps.size(),
        XXH3_64bits(text.data(), text.size()), plan.temp_bytes, plan.temp_bytes_bound,
        plan.shared_bytes, cost.flops, cost.read_bytes, cost.written_bytes, cost.traffic_bytes);
  }
}
