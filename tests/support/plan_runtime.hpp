#pragma once
/// A Runtime that compiles programs for a mesh, for tests. Derived classes run the plans.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/tensor/compile_cache.hpp"
#include "tests/support/interpret_runtime.hpp"

namespace weft::testing {

class PlanRuntime : public InterpretRuntime {
 public:
  explicit PlanRuntime(const Mesh& mesh) : InterpretRuntime(mesh) {}

  std::vector<std::shared_ptr<const Plan>> plans;  ///< all compiled plans, the oldest first
  /// For each time that a source line was compiled again: the reasons.
  std::vector<std::string> recompiles;

 protected:
  /// Runs a plan on global inputs and returns its global outputs.
  virtual std::vector<Elements> run_plan(const Plan& plan, std::span<const Elements> inputs) = 0;

 private:
  Execution execute(const Program& program, const Fingerprint& key,
                    std::span<const Elements> inputs, const RunSite& site) override {
    const CompileCache::Entry* entry = cache_.find(program, key);
    if (entry == nullptr) {
      if (auto reason = cache_.explain(program, site)) recompiles.push_back(std::move(*reason));
      plans.push_back(std::make_shared<const Plan>(compile(program, *mesh(), kCpuTarget)));
      entry =
          &cache_.add(program, key, {static_cast<std::uint32_t>(plans.size() - 1), plans.back()});
    }
    const Plan& plan = *entry->plan;
    Execution execution{
        .outputs = run_plan(plan, inputs), .input_shardings = {}, .output_shardings = {}};
    for (const ProgramInput& input : plan.program.inputs) {
      execution.input_shardings.push_back(input.sharding);
    }
    for (const ProgramOutput& output : plan.program.outputs) {
      execution.output_shardings.push_back(output.sharding);
    }
    return execution;
  }

  CompileCache cache_;
};

}  // namespace weft::testing
