#pragma once
/// Makes a small plan whose values are placed by hand, so that its file doesn't change with the
/// planner.

#include "spmd/ops/builder.hpp"
#include "spmd/plan/plan.hpp"

namespace weft {

/// Computes w + 0.5 * (x^T x, summed over "data") as the next w on a (2,1) mesh. The plan has a
/// dot_general, an all_reduce and a constant.
inline Plan sample_plan() {
  const Mesh mesh({2, 1}, {"data", "model"});
  const AtomList data = mesh.axis_atoms(0);
  Sharding by_row;
  by_row.dims[0] = data;

  Plan plan;
  Program& program = plan.program;
  const ValueId x = program.add_input({DType::f32, {2, 4}}, InputKind::data, "x", by_row);
  const ValueId w =
      program.add_input({DType::f32, {4, 4}}, InputKind::param, "w", Sharding::closed());
  Builder builder(program);
  builder.set_loc("train.cpp:41");
  const ValueId local = builder.dot_general(
      x, x, {.lhs_batch = {}, .rhs_batch = {}, .lhs_contracting = {0}, .rhs_contracting = {0}});
  const ValueId sum = builder.all_reduce(mesh, local, data, ReduceKind::add);
  builder.set_loc("train.cpp:42");
  const ValueId half = builder.constant(0.5, {DType::f32, {4, 4}});
  const ValueId scaled = builder.binary(OpKind::multiply, sum, half);
  const ValueId updated = builder.binary(OpKind::add, w, scaled);
  program.add_output(updated, "w", Sharding::closed(), 1);

  plan.input_types = {{DType::f32, {4, 4}}, {DType::f32, {4, 4}}};
  plan.output_types = {{DType::f32, {4, 4}}};
  plan.slots.resize(program.num_values());
  plan.slots[x] = {Place::input, 0};
  plan.slots[w] = {Place::input, 1};
  plan.slots[local] = {Place::temp, 0};
  plan.slots[sum] = {Place::temp, 64};
  plan.slots[half] = {Place::temp, 0};
  plan.slots[updated] = {Place::output, 0};
  plan.slots[scaled] = {Place::tile, 0};
  plan.steps = {{StepKind::compute, 0, 1},
                {StepKind::collective, 1, 1},
                {StepKind::compute, 2, 1},
                {StepKind::update_wait, 0, 0},
                {StepKind::loop, 3, 2}};
  plan.tiles = {{4, scaled, 0}};
  plan.donated = {true};
  plan.temp_bytes = 128;
  plan.temp_bytes_bound = 128;
  plan.mesh_shape = mesh.shape();
  plan.axis_names = mesh.axis_names();
  return plan;
}

}  // namespace weft
