#include "spmd/ops/verify.hpp"

#include <algorithm>

#include "spmd/control/manual_axes.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/rules/custom_rule.hpp"

namespace weft {
namespace {

template <typename... Args>
[[noreturn]] void corrupt(fmt::format_string<Args...> format, Args&&... args) {
  fail(Errc::corrupt, "Program: {}", fmt::format(format, std::forward<Args>(args)...));
}

void check_begins(std::string_view name, const std::vector<std::uint32_t>& begins,
                  std::size_t num_ops, std::size_t end) {
  if (begins.size() != num_ops + 1) {
    corrupt("{} has {} entries for {} ops; it needs one more than ops", name, begins.size(),
            num_ops);
  }
  if (begins.front() != 0 || begins.back() != end ||
      !std::is_sorted(begins.begin(), begins.end())) {
    corrupt("{} must ascend from 0 to {}", name, end);
  }
}

void check_sizes(const Program& program) {
  const std::size_t num_ops = program.op_kinds.size();
  if (program.value_types.size() >= kNoId || num_ops >= kNoId) corrupt("too many values or ops");
  if (program.value_ops.size() != program.value_types.size()) {
    corrupt("value_ops has {} entries for {} values", program.value_ops.size(),
            program.value_types.size());
  }
  if (program.results.size() != num_ops) {
    corrupt("results has {} entries for {} ops", program.results.size(), num_ops);
  }
  if (program.op_locs.size() != num_ops) {
    corrupt("op_locs has {} entries for {} ops", program.op_locs.size(), num_ops);
  }
  check_begins("operand_begin", program.operand_begin, num_ops, program.operands.size());
  check_begins("attr_begin", program.attr_begin, num_ops, program.attrs.size());
  if (program.locs.empty()) corrupt("locs is empty; entry 0 means unknown");
  for (const std::string& loc : program.locs) {
    if (loc.find('\n') != std::string::npos) corrupt("location '{}' has a line break", loc);
  }
  for (const LocId loc : program.op_locs) {
    if (loc >= program.locs.size()) corrupt("location {} is outside locs", loc);
  }
}

void check_types(const Program& program) {
  for (ValueId value = 0; value < program.num_values(); ++value) {
    const TensorType& type = program.type(value);
    if (static_cast<std::size_t>(type.dtype) >= kDTypeCount) {
      corrupt("value %{} has dtype {}", value, static_cast<int>(type.dtype));
    }
    try {
      Shape(std::span<const std::int64_t>(type.shape));
    } catch (const Error& error) {
      corrupt("value %{}: {}", value, error.what());
    }
  }
}

void check_definitions(const Program& program) {
  std::vector<bool> defined(program.num_values(), false);
  const auto define = [&](ValueId value, OpId op, std::string_view what, std::size_t number) {
    if (value >= program.num_values()) {
      corrupt("{} {} defines value %{}, but there are {} values", what, number, value,
              program.num_values());
    }
    if (defined[value]) corrupt("{} {} defines value %{} again", what, number, value);
    if (program.value_ops[value] != op) {
      corrupt("{} {} defines value %{}, but value_ops says otherwise", what, number, value);
    }
    defined[value] = true;
  };
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    define(program.inputs[i].value, kNoId, "input", i);
  }
  for (OpId op = 0; op < program.num_ops(); ++op) define(program.result(op), op, "op", op);
  for (ValueId value = 0; value < program.num_values(); ++value) {
    if (!defined[value]) corrupt("value %{} is defined by no input or op", value);
  }
}

void check_sharding(const Mesh& mesh, const Sharding& sharding, int num_dims,
                    std::string_view what) {
  std::uint32_t seen = 0;
  const auto use = [&](AtomMask atoms) {
    if ((atoms & seen) != 0) corrupt("{}: an atom is twice in the sharding", what);
    seen |= atoms;
  };
  for (int dim = 0; dim < kDimCountMax; ++dim) {
    const AtomList atoms = sharding.dims[static_cast<std::size_t>(dim)];
    if (!is_atom_list(mesh, atoms.bits())) {
      corrupt("{}: dim {} of the sharding has {:#x}, not a list of atoms of mesh {}", what, dim,
              atoms.bits(), mesh.to_string());
    }
    if (dim >= num_dims && !atoms.empty()) {
      corrupt("{}: the sharding has atoms for dim {} of a value of {} dims", what, dim, num_dims);
    }
    use(atoms.mask());
  }
  use(sharding.unreduced);
  use(sharding.replicated);
  const AtomMask known = mesh.all_atoms();
  if ((seen & ~known) != 0) {
    corrupt("{}: the sharding has atoms {:#x}; mesh {} has 1..{}", what, seen, mesh.to_string(),
            mesh.num_atoms());
  }
  for (Atom atom = 0; atom <= kAtomCountMax; ++atom) {
    if (((known >> atom) & 1U) == 0 && sharding.priority(atom) != 0) {
      corrupt("{}: the sharding has a priority for atom {}; mesh {} has 1..{}", what, atom,
              mesh.to_string(), mesh.num_atoms());
    }
  }
  if (sharding.open_mask >> num_dims != 0) {
    corrupt("{}: the sharding opens dims that a value of {} dims doesn't have", what, num_dims);
  }
  if (sharding.reduce_kind > ReduceKind::min) {
    corrupt("{}: the sharding has reduce kind {}", what, static_cast<int>(sharding.reduce_kind));
  }
}

void check_tables(const Program& program, OpId op, std::span<const TensorType> operands) {
  const std::span<const std::int64_t> attrs = program.op_attrs(op);
  const Form table = table_of(program.kind(op));
  if (table == Form::elements) {
    const auto pool = static_cast<std::int64_t>(program.const_pool.size());
    if (attrs[0] < 0 || attrs[0] % 8 != 0 || attrs[0] > pool || attrs[1] > pool - attrs[0]) {
      fail(Errc::corrupt, "bytes {} + {} aren't in the constant pool of {}, aligned to 8", attrs[0],
           attrs[1], pool);
    }
  }
  if (table == Form::target) {
    const auto count = static_cast<std::int64_t>(program.custom_targets.size());
    if (attrs[0] < 0 || attrs[0] >= count) {
      fail(Errc::corrupt, "custom target {} is outside the table of {}", attrs[0], count);
    }
    const RuleText rule = parse_custom_rule(program.custom_target(op).rule);
    check_custom_result(rule, factor_sizes(rule, operands), program.type(program.result(op)));
  }
  if (table == Form::constraint) {
    const auto count = static_cast<std::int64_t>(program.constraints.size());
    if (attrs[0] < 0 || attrs[0] >= count) {
      fail(Errc::corrupt, "constraint {} is outside the table of {}", attrs[0], count);
    }
  }
}

/// Checks one op. `types` is reused memory for the types of the operands.
void check_op(const Program& program, const Mesh& mesh, OpId op, std::vector<TensorType>& types) {
  types.clear();
  for (const ValueId operand : program.op_operands(op)) {
    if (operand >= program.num_values()) {
      fail(Errc::corrupt, "operand %{} doesn't exist; there are {} values", operand,
           program.num_values());
    }
    const OpId definition = program.defining_op(operand);
    if (definition != kNoId && definition >= op) {
      fail(Errc::corrupt, "operand %{} is defined by op {}, not before", operand, definition);
    }
    types.push_back(program.type(operand));
  }
  const TensorType& result = program.type(program.result(op));
  const TensorType inferred =
      infer_type({program.kind(op), types, program.op_attrs(op), result, &mesh});
  if (inferred != result) {
    fail(Errc::corrupt, "the result is {}, but its value has type {}", inferred.to_string(),
         result.to_string());
  }
  check_tables(program, op, types);
}

void check_ops(const Program& program, const Mesh& mesh) {
  std::vector<TensorType> types;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const auto what = [&] {
      const std::string& loc = program.loc(op);
      return fmt::format("op {} ({}{}{})", op, to_string(program.kind(op)),
                         loc.empty() ? "" : " at ", loc);
    };
    try {
      check_op(program, mesh, op, types);
    } catch (const Error& error) {
      corrupt("{}: {}", what(), error.what());
    }
    if (table_of(program.kind(op)) == Form::constraint) {
      const auto index = static_cast<std::size_t>(program.op_attrs(op)[0]);
      check_sharding(mesh, program.constraints[index], program.shape(program.result(op)).size(),
                     what());
    }
  }
}

void check_reduced(const Sharding& sharding, std::string_view what) {
  if (sharding.unreduced != 0)
    corrupt("{} is unreduced; only values inside the program may be unreduced", what);
}

void check_inputs(const Program& program, const Mesh& mesh) {
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const ProgramInput& input = program.inputs[i];
    const std::string what = fmt::format("input {} \"{}\"", i, input.name);
    if (input.kind > InputKind::buffer) {
      corrupt("{} has kind {}", what, static_cast<int>(input.kind));
    }
    check_sharding(mesh, input.sharding, program.shape(input.value).size(), what);
    check_reduced(input.sharding, what);
  }
}

void check_update(const Program& program, const ProgramOutput& output, std::string_view what) {
  if (output.updates < 0 || output.updates >= static_cast<std::int64_t>(program.inputs.size())) {
    corrupt("{} updates input {}, but there are {} inputs", what, output.updates,
            program.inputs.size());
  }
  const ProgramInput& input = program.inputs[static_cast<std::size_t>(output.updates)];
  if (!is_state(input.kind)) {
    corrupt("{} updates \"{}\", which is {}; only state has versions", what, input.name,
            to_string(input.kind));
  }
  const TensorType& now = program.type(input.value);
  const TensorType& next = program.type(output.value);
  if (now != next) {
    corrupt("{} is {} but updates \"{}\" of type {}", what, next.to_string(), input.name,
            now.to_string());
  }
  // In a global program, the sharding of the output may be open. Propagation then makes both
  // shardings equal.
  const bool both_closed = input.sharding.open_mask == 0 && output.sharding.open_mask == 0;
  if (both_closed && !output.sharding.same_layout(input.sharding)) {
    corrupt("{} updates \"{}\" but is sharded in another way", what, input.name);
  }
}

void check_outputs(const Program& program, const Mesh& mesh) {
  std::vector<bool> updated(program.inputs.size(), false);
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ProgramOutput& output = program.outputs[i];
    const std::string what = fmt::format("output {} \"{}\"", i, output.name);
    if (output.value >= program.num_values()) {
      corrupt("{} is value %{}, but there are {} values", what, output.value, program.num_values());
    }
    check_sharding(mesh, output.sharding, program.shape(output.value).size(), what);
    check_reduced(output.sharding, what);
    if (output.updates == -1) continue;
    check_update(program, output, what);
    if (updated[static_cast<std::size_t>(output.updates)]) {
      corrupt("{} updates input {} a second time", what, output.updates);
    }
    updated[static_cast<std::size_t>(output.updates)] = true;
  }
}

}  // namespace

void verify(const Program& program, const Mesh& mesh) {
  check_sizes(program);
  check_types(program);
  check_definitions(program);
  check_ops(program, mesh);
  check_inputs(program, mesh);
  check_outputs(program, mesh);
  verify_loops(program);
  if (ManualAxes::has_any(program)) check_manual(program, mesh);
}

}  // namespace weft
