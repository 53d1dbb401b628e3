#pragma once
/// A Runtime that compiles for a mesh and runs the plan on the CPU engines of all its chips, with
/// the kernel path of this process.

#include "tests/support/engine_mesh.hpp"
#include "tests/support/plan_runtime.hpp"

namespace weft::testing {

class EngineRuntime : public PlanRuntime {
 public:
  explicit EngineRuntime(const Mesh& mesh = Mesh({1}, {"data"}))
      : PlanRuntime(mesh), engines_(mesh) {}

 protected:
  std::vector<Elements> run_plan(const Plan& plan, std::span<const Elements> inputs) override {
    return join(plan, *mesh(), engines_.run(plan, inputs, EngineMesh::Schedule::one_thread));
  }

 private:
  EngineMesh engines_;
};

}  // namespace weft::testing
