#include "spmd/plan/settle.hpp"

#include <algorithm>

namespace weft {
namespace {

bool asks_the_same(const Program& a, const Program& b) {
  return std::ranges::equal(a.inputs, b.inputs, {}, &ProgramInput::sharding,
                            &ProgramInput::sharding);
}

}  // namespace

Program settled(const Program& program, const Plan& plan) {
  Program next = program;
  const auto settle = [&](std::size_t input, Sharding sharding) {
    if (next.type(next.inputs[input].value).num_elements() == 1) return;
    sharding.open_mask = 0;
    next.inputs[input].sharding = sharding;
  };
  for (std::size_t i = 0; i < next.inputs.size(); ++i) {
    if (is_state(next.inputs[i].kind)) settle(i, plan.program.inputs[i].sharding);
  }
  for (std::size_t i = 0; i < next.outputs.size(); ++i) {
    const auto updated = static_cast<std::size_t>(next.outputs[i].updates);
    if (next.outputs[i].updates < 0) continue;
    settle(updated, plan.program.outputs[i].sharding);
    next.outputs[i].sharding = next.inputs[updated].sharding;
  }
  return next;
}

Plan compile_settled(const Program& program, const Mesh& mesh, const Target& target,
                     const PassObserver& observer) {
  constexpr int kRoundsMax = 4;  // one or two rounds usually suffice
  Program asked = program;
  for (int round = 1;; ++round) {
    Plan plan = compile(asked, mesh, target, observer);
    Program next = settled(asked, plan);
    if (round == kRoundsMax || asks_the_same(asked, next)) return plan;
    asked = std::move(next);
  }
}

}  // namespace weft
