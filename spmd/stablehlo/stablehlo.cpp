#include "spmd/stablehlo/stablehlo.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

using Role = StableHloArgument::Role;

const TensorType kPositionType{DType::i32, {}};
const TensorType kFaultsType{DType::i32, {2}};

bool any_op(const Program& program, bool (*holds)(const Program&, OpId)) {
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (holds(program, op)) return true;
  }
  return false;
}

bool is_check(const Program& program, OpId op) {
  return program.kind(op) == OpKind::check_index &&
         program.type(program.result(op)).num_elements() > 0;
}
bool meets(const Program& program, OpId op) { return is_collective(program.kind(op)); }
bool is_placed(const Program& program, OpId op) {
  return depends_on_chip(*row(program.kind(op)).attrs, program.op_attrs(op)) &&
         !is_collective(program.kind(op));
}

void check_homes(const Program& program, const std::vector<OutputHome>& homes) {
  if (homes.empty()) return;
  if (homes.size() != program.outputs.size()) {
    fail(Errc::invalid_argument,
         "to_stablehlo: homes has {} entries, but the program has {} outputs; give one for each",
         homes.size(), program.outputs.size());
  }
  for (std::size_t i = 0; i < homes.size(); ++i) {
    if (homes[i] != OutputHome::updated || program.outputs[i].updates >= 0) continue;
    fail(Errc::invalid_argument,
         "to_stablehlo: homes[{}] is `updated`, but output \"{}\" updates no input; use `fresh` or "
         "`place`",
         i, program.outputs[i].name);
  }
}

std::vector<StableHloArgument> arguments_of(const Program& program,
                                            const std::vector<OutputHome>& homes) {
  std::vector<StableHloArgument> arguments;
  for (std::uint32_t i = 0; i < program.inputs.size(); ++i) {
    arguments.push_back({Role::input, i, program.type(program.inputs[i].value)});
  }
  for (std::uint32_t i = 0; i < homes.size(); ++i) {
    const ProgramOutput& output = program.outputs[i];
    const auto result = static_cast<std::int32_t>(i);
    if (homes[i] == OutputHome::place) {
      arguments.push_back({Role::place, i, program.type(output.value), result});
    } else if (homes[i] == OutputHome::updated) {
      arguments[static_cast<std::size_t>(output.updates)].result = result;
    }
  }
  return arguments;
}

/// Returns a name that MLIR accepts after an @.
std::string symbol(std::string_view name) {
  std::string text = "weft_";
  for (const char c : name) {
    text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return text;
}

std::string argument_name(std::size_t i) { return fmt::format("%arg{}", i); }

std::string signature_of(const StableHlo& made) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < made.arguments.size(); ++i) {
    const StableHloArgument& argument = made.arguments[i];
    arguments.push_back(fmt::format(
        "{}: {}{}", argument_name(i), hlo_type(argument.type).text(),
        argument.result < 0 ? ""
                            : fmt::format(" {{tf.aliasing_output = {} : i32}}", argument.result)));
  }
  std::vector<std::string> results;
  for (const StableHloResult& result : made.results) {
    results.push_back(hlo_type(result.type).text());
  }
  return fmt::format("func.func @main({}) -> ({})", fmt::join(arguments, ", "),
                     fmt::join(results, ", "));
}

std::string return_text(const HloWriter::Values& results) {
  std::vector<std::string> names, types;
  for (const HloValue& result : results) {
    names.push_back(result.name);
    types.push_back(result.type.text());
  }
  return fmt::format("    \"func.return\"({}) : ({}) -> ()\n", fmt::join(names, ", "),
                     fmt::join(types, ", "));
}

}  // namespace

HloValue HloContext::of_position(std::span<const std::int64_t> by_position) {
  const auto is_first = [&](std::int64_t number) { return number == by_position[0]; };
  if (std::ranges::all_of(by_position, is_first)) {
    return writer.reshape(writer.integers(by_position.first(1)), {});
  }
  WEFT_CHECK(!position.name.empty());
  const HloValue all = writer.integers(by_position);
  return writer.reshape(writer.op("dynamic_slice", {all, position}, all.type.with(HloDims{1}),
                                  "slice_sizes = array<i64: 1>"),
                        {});
}

std::vector<std::int64_t> HloOp::firsts(std::size_t word) const {
  std::vector<std::int64_t> all;
  for (int position = 0; position < context.mesh.size(); ++position) {
    all.push_back(place_on_chip(program, op, &context.mesh, position)[word].first);
  }
  return all;
}

bool HloOp::is_whole(std::size_t word) const {
  return std::ranges::all_of(firsts(word), [](std::int64_t first) { return first == 0; });
}

StableHlo to_stablehlo(const Program& chip_program, const Mesh& mesh, std::string_view name,
                       const StableHloOptions& options) {
  check_homes(chip_program, options.homes);
  const bool calls = options.collectives == CollectiveForm::calls && any_op(chip_program, meets);
  const bool is_of_position = calls || any_op(chip_program, is_placed);
  const bool finds_faults = options.detects_anomaly || any_op(chip_program, is_check);
  StableHlo made;
  made.arguments = arguments_of(chip_program, options.homes);
  HloContext context{.mesh = mesh, .options = options};
  if (options.detects_anomaly) context.looks_at = &chip_program;
  HloWriter& w = context.writer;
  if (is_of_position && options.collectives == CollectiveForm::calls) {
    context.position = {argument_name(made.arguments.size()), hlo_type(kPositionType)};
    made.arguments.push_back({Role::position, 0, kPositionType});
  } else if (is_of_position) {
    context.position = w.convert(w.op("replica_id", {}, {"ui32", {}}), "i32");
  }
  if (calls) context.token = context.position;
  if (finds_faults) {
    context.faults =
        w.op("constant", {}, hlo_type(kFaultsType), "value = dense<[-1, 0]> : tensor<2xi32>");
  }
  HloWriter::Values inputs(chip_program.num_values());
  for (std::size_t i = 0; i < chip_program.inputs.size(); ++i) {
    const ValueId value = chip_program.inputs[i].value;
    inputs[value] = {argument_name(i), hlo_type(chip_program.type(value))};
  }
  ProgramLowering lowering(context, chip_program, std::move(inputs));
  lowering.run();
  HloWriter::Values results;
  for (std::uint32_t i = 0; i < chip_program.outputs.size(); ++i) {
    const ValueId value = chip_program.outputs[i].value;
    results.push_back(lowering[value]);
    made.results.push_back({StableHloResult::Role::output, i, chip_program.type(value)});
  }
  if (finds_faults) {
    results.push_back(context.faults);
    made.results.push_back({StableHloResult::Role::faults, 0, kFaultsType});
  }
  made.collectives = context.collectives;
  made.text = fmt::format("module @{} {{\n  {} {{\n{}{}  }}\n}}\n", symbol(name),
                          signature_of(made), w.text(), return_text(results));
  return made;
}

}  // namespace weft
