#pragma once
/// A Runtime that compiles for a mesh and simulates all chips of the mesh.

#include "tests/support/plan_runtime.hpp"

namespace weft::testing {

class SimulateRuntime : public PlanRuntime {
 public:
  using PlanRuntime::PlanRuntime;

 protected:
  std::vector<Elements> run_plan(const Plan& plan, std::span<const Elements> inputs) override {
    return simulate(plan.program, *mesh(), plan.input_types, plan.output_types, inputs);
  }
};

}  // namespace weft::testing
