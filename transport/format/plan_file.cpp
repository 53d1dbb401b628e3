#include "transport/format/plan_file.hpp"

#include <algorithm>
#include <limits>

#include <weft_schema/plan_generated.h>

#include "transport/format/tensor_fields.hpp"

namespace weft {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

static_assert(static_cast<int>(fb::InputKind::MAX) == static_cast<int>(InputKind::buffer));
static_assert(static_cast<int>(fb::Place::MAX) == static_cast<int>(Place::part));
static_assert(static_cast<int>(fb::StepKind::MAX) == static_cast<int>(StepKind::wait));

Offset<fb::Input> write_input(FlatBufferBuilder& builder, const ProgramInput& input,
                              const TensorType& global) {
  const auto name = builder.CreateString(input.name);
  const fb::TensorType type = write_type(global);
  const fb::Sharding sharding = write_sharding(input.sharding);
  return fb::CreateInput(builder, input.value, static_cast<fb::InputKind>(input.kind), name, &type,
                         &sharding);
}

Offset<fb::Output> write_output(FlatBufferBuilder& builder, const ProgramOutput& output,
                                const TensorType& global, bool donated) {
  const auto name = builder.CreateString(output.name);
  const fb::TensorType type = write_type(global);
  const fb::Sharding sharding = write_sharding(output.sharding);
  return fb::CreateOutput(builder, output.value, name, &type, &sharding, output.updates, donated);
}

template <typename From, typename Write>
auto map(const std::vector<From>& values, Write write) {
  std::vector<decltype(write(values.front()))> result;
  result.reserve(values.size());
  std::ranges::transform(values, std::back_inserter(result), write);
  return result;
}

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(Errc::corrupt, "{}: {}", kPlanFormat.name, fmt::format(format, std::forward<Args>(args)...));
}

void require_size(std::string_view field, std::size_t size, std::size_t expected) {
  if (size != expected) refuse("{} has {} entries instead of {}", field, size, expected);
}

void require_ids(std::string_view field, std::span<const std::uint32_t> ids, std::size_t limit) {
  for (const std::uint32_t id : ids) {
    if (id >= limit) refuse("{} has the number {}, expected less than {}", field, id, limit);
  }
}

/// Throws unless `begins` divides an array of `size` entries into `ops` consecutive ranges, where
/// entry i is the begin of range i.
void require_begins(std::string_view field, const std::vector<std::uint32_t>& begins,
                    std::size_t ops, std::size_t size) {
  require_size(field, begins.size(), ops + 1);
  if (begins.front() != 0 || begins.back() != size || !std::ranges::is_sorted(begins)) {
    refuse("{} doesn't rise from 0 to {}", field, size);
  }
}

template <typename T>
auto elements(const flatbuffers::Vector<T>& vector) {
  return weft::elements(vector, kPlanFormat.name);
}

template <typename T>
std::vector<T> read_numbers(const flatbuffers::Vector<T>& vector) {
  return weft::read_numbers(vector, kPlanFormat.name);
}

Mesh read_mesh(const fb::Plan& stored) {
  std::int64_t chips = 1;
  for (const std::int64_t size : elements(*stored.mesh_shape())) {
    if (size < 1 || size > kPlanChipCountMax / chips) {
      refuse("a mesh axis of size {}; a mesh has at most {} chips", size, kPlanChipCountMax);
    }
    chips *= size;
  }
  try {
    return {read_numbers(*stored.mesh_shape()),
            read_strings(*stored.axis_names()),
            {},
            read_dcn_shape(stored.dcn_shape(), kPlanFormat.name)};
  } catch (const Error& error) {
    refuse("{}", error.what());
  }
}

void read_values(const fb::Plan& stored, Program& program) {
  for (const fb::TensorType& type : elements(*stored.value_types())) {
    program.value_types.push_back(read_type(type, kPlanFormat.name));
  }
  program.value_ops = read_numbers(*stored.value_ops());
  require_size("value_ops", program.value_ops.size(), program.num_values());
  for (const OpId op : program.value_ops) {
    if (op != kNoId) require_ids("value_ops", {&op, 1}, stored.op_kinds()->size());
  }
}

void read_ops(const fb::Plan& stored, Program& program) {
  for (const std::uint16_t kind : elements(*stored.op_kinds())) {
    if (!is_op_kind(kind)) refuse("there is no op kind {}", kind);
    program.op_kinds.push_back(static_cast<OpKind>(kind));
  }
  const std::size_t ops = program.op_kinds.size();
  program.operands = read_numbers(*stored.operands());
  require_ids("operands", program.operands, program.num_values());
  program.operand_begin = read_numbers(*stored.operand_begin());
  require_begins("operand_begin", program.operand_begin, ops, program.operands.size());
  program.results = read_numbers(*stored.results());
  require_size("results", program.results.size(), ops);
  require_ids("results", program.results, program.num_values());
  program.attrs = read_numbers(*stored.attrs());
  program.attr_begin = read_numbers(*stored.attr_begin());
  require_begins("attr_begin", program.attr_begin, ops, program.attrs.size());
  program.locs = read_strings(*stored.locs());
  program.op_locs = read_numbers(*stored.op_locs());
  require_size("op_locs", program.op_locs.size(), ops);
  require_ids("op_locs", program.op_locs, program.locs.size());
}

void read_inputs(const fb::Plan& stored, const Mesh& mesh, Plan& plan) {
  for (const fb::Input* input : *stored.inputs()) {
    const std::uint32_t value = input->value();
    require_ids("inputs", {&value, 1}, plan.program.num_values());
    if (input->kind() > fb::InputKind::MAX) {
      refuse("there is no kind of input {}", static_cast<int>(input->kind()));
    }
    plan.program.inputs.push_back(
        {.value = value,
         .kind = static_cast<InputKind>(input->kind()),
         .name = input->name()->str(),
         .sharding = read_sharding(*input->sharding(), mesh, kPlanFormat.name)});
    plan.input_types.push_back(read_type(*input->type(), kPlanFormat.name));
  }
}

void read_outputs(const fb::Plan& stored, const Mesh& mesh, Plan& plan) {
  const auto inputs = static_cast<std::int64_t>(plan.program.inputs.size());
  for (const fb::Output* output : *stored.outputs()) {
    const std::uint32_t value = output->value();
    require_ids("outputs", {&value, 1}, plan.program.num_values());
    if (output->updates() < -1 || output->updates() >= inputs) {
      refuse("an output updates input {} of {}", output->updates(), inputs);
    }
    plan.program.outputs.push_back(
        {.value = value,
         .name = output->name()->str(),
         .sharding = read_sharding(*output->sharding(), mesh, kPlanFormat.name),
         .updates = output->updates()});
    plan.output_types.push_back(read_type(*output->type(), kPlanFormat.name));
    plan.donated.push_back(output->donated());
  }
}

void read_steps(const fb::Plan& stored, Plan& plan) {
  const std::size_t ops = plan.program.num_ops();
  for (const fb::Step& step : elements(*stored.steps())) {
    if (step.kind() > fb::StepKind::MAX) {
      refuse("there is no kind of step {}", static_cast<int>(step.kind()));
    }
    if (step.first() > ops || step.count() > ops - step.first()) {
      refuse("a step has {} ops beginning at op {}, but there are {} ops", step.count(),
             step.first(), ops);
    }
    plan.steps.push_back({static_cast<StepKind>(step.kind()), step.first(), step.count()});
  }
  for (const fb::TileBuffer& tile : elements(*stored.tiles())) {
    if (tile.step() >= plan.steps.size() || tile.value() >= plan.program.num_values()) {
      refuse("tile buffer {} is of value {} in step {}", tile.buffer(), tile.value(), tile.step());
    }
    plan.tiles.push_back({tile.step(), tile.value(), tile.buffer()});
  }
  plan.held = read_numbers(*stored.held());
  require_ids("held", plan.held, plan.program.outputs.size());
}

void read_slots(const fb::Plan& stored, Plan& plan) {
  const std::array<std::uint64_t, 6> limits{plan.temp_bytes,
                                            plan.input_types.size(),
                                            plan.output_types.size(),
                                            plan.shared_bytes,
                                            0,
                                            plan.program.num_values()};
  require_size("slots", stored.slots()->size(), plan.program.num_values());
  for (const fb::Slot& slot : elements(*stored.slots())) {
    if (slot.place() > fb::Place::MAX) {
      refuse("there is no place {}", static_cast<int>(slot.place()));
    }
    const std::uint64_t limit = limits[static_cast<std::size_t>(slot.place())];
    const bool is_number = slot.place() == fb::Place::input || slot.place() == fb::Place::output ||
                           slot.place() == fb::Place::part;
    // A value without bytes may begin at the very end of its region.
    if (slot.offset() > limit || (slot.offset() == limit && is_number)) {
      refuse("a slot is at {}, but its region ends at {}", slot.offset(), limit);
    }
    plan.slots.push_back({static_cast<Place>(slot.place()), slot.offset()});
  }
}

}  // namespace

std::vector<std::byte> encode_plan(const Plan& plan) {
  const Program& program = plan.program;
  FlatBufferBuilder builder;
  std::vector<Offset<fb::Input>> inputs;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    inputs.push_back(write_input(builder, program.inputs[i], plan.input_types.at(i)));
  }
  std::vector<Offset<fb::Output>> outputs;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    outputs.push_back(
        write_output(builder, program.outputs[i], plan.output_types.at(i), plan.donated.at(i)));
  }
  std::vector<Offset<fb::CustomTarget>> targets;
  for (const CustomTarget& target : program.custom_targets) {
    const auto name = builder.CreateString(target.name);
    targets.push_back(fb::CreateCustomTarget(builder, name, builder.CreateString(target.rule)));
  }
  const auto types = map(program.value_types, write_type);
  const auto kinds =
      map(program.op_kinds, [](OpKind kind) { return static_cast<std::uint16_t>(kind); });
  const auto constraints = map(program.constraints, write_sharding);
  const auto slots = map(plan.slots, [](const Slot& slot) {
    return fb::Slot(slot.offset, static_cast<fb::Place>(slot.place));
  });
  const auto steps = map(plan.steps, [](const PlanStep& step) {
    return fb::Step(step.first, step.count, static_cast<fb::StepKind>(step.kind));
  });
  const auto tiles = map(plan.tiles, [](const TileBuffer& tile) {
    return fb::TileBuffer(tile.step, tile.value, tile.buffer);
  });
  const std::span pool(reinterpret_cast<const std::uint8_t*>(program.const_pool.data()),
                       program.const_pool.size());

  const auto mesh_shape = builder.CreateVector(plan.mesh_shape);
  const auto axis_names = builder.CreateVectorOfStrings(plan.axis_names);
  const auto value_types = builder.CreateVectorOfStructs(types);
  const auto value_ops = builder.CreateVector(program.value_ops);
  const auto slot_list = builder.CreateVectorOfStructs(slots);
  const auto op_kinds = builder.CreateVector(kinds);
  const auto operand_begin = builder.CreateVector(program.operand_begin);
  const auto operands = builder.CreateVector(program.operands);
  const auto results = builder.CreateVector(program.results);
  const auto attr_begin = builder.CreateVector(program.attr_begin);
  const auto attrs = builder.CreateVector(program.attrs);
  const auto op_locs = builder.CreateVector(program.op_locs);
  const auto const_pool = builder.CreateVector(pool.data(), pool.size());
  const auto constraint_list = builder.CreateVectorOfStructs(constraints);
  const auto locs = builder.CreateVectorOfStrings(program.locs);
  const auto input_list = builder.CreateVector(inputs);
  const auto output_list = builder.CreateVector(outputs);
  const auto step_list = builder.CreateVectorOfStructs(steps);
  const auto tile_list = builder.CreateVectorOfStructs(tiles);
  const auto held = builder.CreateVector(plan.held);
  const auto hosts = plan.dcn_shape.empty() ? 0 : builder.CreateVector(plan.dcn_shape);
  const auto target_list = targets.empty() ? 0 : builder.CreateVector(targets);
  fb::FinishPlanBuffer(
      builder, fb::CreatePlan(builder, mesh_shape, axis_names, value_types, value_ops, slot_list,
                              op_kinds, operand_begin, operands, results, attr_begin, attrs,
                              op_locs, const_pool, constraint_list, locs, input_list, output_list,
                              plan.temp_bytes, plan.temp_bytes_bound, plan.shared_bytes,
                              target_list, step_list, tile_list, held, hosts));
  return make_envelope(kPlanFormat, body_of(builder));
}

Plan decode_plan(std::span<const std::byte> bytes) {
  const auto body = open_file(kPlanFormat, bytes);
  verify_body(body, fb::VerifyPlanBuffer, kPlanFormat.name);
  const fb::Plan& stored = *fb::GetPlan(body.data());

  const Mesh mesh = read_mesh(stored);
  Plan plan;
  plan.mesh_shape = mesh.shape();
  plan.axis_names = mesh.axis_names();
  plan.dcn_shape = dcn_shape(mesh);
  plan.temp_bytes = stored.temp_bytes();
  plan.temp_bytes_bound = stored.temp_bytes_bound();
  plan.shared_bytes = stored.shared_bytes();
  read_values(stored, plan.program);
  read_ops(stored, plan.program);
  const auto pool = std::as_bytes(elements(*stored.const_pool()));
  plan.program.const_pool.assign(pool.begin(), pool.end());
  for (const fb::Sharding& sharding : elements(*stored.constraints())) {
    plan.program.constraints.push_back(read_sharding(sharding, mesh, kPlanFormat.name));
  }
  if (stored.custom_targets() != nullptr) {
    for (const fb::CustomTarget* target : *stored.custom_targets()) {
      plan.program.custom_targets.push_back({target->name()->str(), target->rule()->str()});
    }
  }
  read_inputs(stored, mesh, plan);
  read_outputs(stored, mesh, plan);
  read_slots(stored, plan);
  read_steps(stored, plan);
  return plan;
}

}  // namespace weft
