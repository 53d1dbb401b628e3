#include "spmd/text/difference.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "spmd/ops/row.hpp"
#include "spmd/program/element.hpp"

namespace weft {
namespace {

/// The largest number of causes that are listed. Further causes are only counted.
constexpr std::size_t kCauseCountMax = 4;

/// The weights of differences in Differences::distance. A different input shape or constant has
/// less weight than a different computation.
constexpr std::size_t kInputWeight = 1;
constexpr std::size_t kConstantWeight = 1;
constexpr std::size_t kOutputWeight = 4;
constexpr std::size_t kOpWeight = 16;

std::string at(const Program& program, LocId loc) {
  return loc == 0 ? std::string() : " at " + program.locs[loc];
}

std::string describe(const Program& program, const ProgramInput& input) {
  return fmt::format("input '{}' {}{}", input.name, program.type(input.value).to_string(),
                     at(program, input.loc));
}

std::string describe_op(const Program& program, OpId op) {
  const bool is_custom = table_of(program.kind(op)) == Form::target;
  return fmt::format(
      "{} {}{}", is_custom ? program.custom_target(op).name : to_string(program.kind(op)),
      program.type(program.result(op)).to_string(), at(program, program.op_locs[op]));
}

std::string describe(const Program& program, const ProgramOutput& output) {
  const OpId op = program.defining_op(output.value);
  return op == kNoId ? program.type(output.value).to_string() : describe_op(program, op);
}

/// Returns advice on how to keep the type of an input the same.
std::string_view advice(const TensorType& before, const TensorType& after) {
  if (before.dtype != after.dtype) return "cast it to one dtype";
  const bool same_dims = before.shape.size() == after.shape.size();
  bool batch_only = same_dims && before.shape.size() > 0;
  bool grows = false;
  for (int dim = 0; same_dims && dim < before.shape.size(); ++dim) {
    if (dim > 0 && before.shape[dim] != after.shape[dim]) batch_only = false;
    grows |= after.shape[dim] > before.shape[dim];
  }
  if (batch_only && !grows) {
    return "if this is a smaller last batch, drop it (drop_last) or pad it (pad_last)";
  }
  if (same_dims && grows) return "if this size grows, pad it to a fixed size and use a mask";
  return "pad it to one shape; otherwise each shape needs its own program";
}

std::span<const std::byte> constant_bytes(const Program& program, OpId op) {
  const auto attrs = program.op_attrs(op);
  return std::span(program.const_pool)
      .subspan(static_cast<std::size_t>(attrs[0]), static_cast<std::size_t>(attrs[1]));
}

/// Returns text such as "0.1" for one element, or "12 elements" for several.
std::string constant_text(const Program& program, OpId op) {
  const DType dtype = program.type(program.result(op)).dtype;
  const auto bytes = constant_bytes(program, op);
  const auto size = static_cast<std::size_t>(byte_size(dtype));
  if (bytes.size() != size) return fmt::format("{} elements", bytes.size() / size);
  const double value = load_element(dtype, bytes.data());
  return dtype == DType::f32 ? fmt::format("{}", static_cast<float>(value))
                             : fmt::format("{}", value);
}

class Comparison {
 public:
  Comparison(const Program& before, const Program& after) : before_(before), after_(after) {}

  Differences run() {
    if (compare_inputs() == 0) {  // a changed input would also change the ops that read it
      compare_ops();
      compare_outputs();
      // A different sharding is a cause only if there is no other cause, because shardings of
      // parameters are expected to change after the first step, which chooses them.
      if (causes_.empty()) compare_shardings();
    }
    if (causes_.size() > kCauseCountMax) {
      const std::size_t more = causes_.size() - kCauseCountMax;
      causes_.resize(kCauseCountMax);
      causes_.push_back(fmt::format("and {} more", more));
    }
    return {std::move(causes_), distance_};
  }

 private:
  void add(std::size_t weight, std::string cause) {
    distance_ += weight;
    if (std::ranges::find(causes_, cause) == causes_.end()) causes_.push_back(std::move(cause));
  }

  /// Returns the number of inputs that differ.
  std::size_t compare_inputs() {
    std::size_t differ = 0;
    const std::size_t common = std::min(before_.inputs.size(), after_.inputs.size());
    for (std::size_t i = 0; i < common; ++i) {
      const ProgramInput& old = before_.inputs[i];
      const ProgramInput& now = after_.inputs[i];
      if (old.name != now.name) {
        // A new or missing input shifts all later inputs, so these aren't compared.
        add(kOpWeight, fmt::format("{} -> {}: the program reads other tensors, or in another order",
                                   describe(before_, old), describe(after_, now)));
        return differ + 1;
      }
      const TensorType& from = before_.type(old.value);
      const TensorType& to = after_.type(now.value);
      if (from == to) continue;
      ++differ;
      add(kInputWeight, fmt::format("input '{}' {} -> {}{}: {}", now.name, from.to_string(),
                                    to.to_string(), at(after_, now.loc), advice(from, to)));
    }
    for (std::size_t i = common; i < before_.inputs.size(); ++i, ++differ) {
      add(kOpWeight, describe(before_, before_.inputs[i]) + " isn't read any more");
    }
    for (std::size_t i = common; i < after_.inputs.size(); ++i, ++differ) {
      add(kOpWeight, describe(after_, after_.inputs[i]) + " is new");
    }
    return differ;
  }

  void compare_ops() {
    const OpId common = std::min(before_.num_ops(), after_.num_ops());
    for (OpId op = 0; op < common; ++op) {
      if (!same_op(op)) {
        add(kOpWeight, fmt::format("{} -> {}: if a branch on the host causes this, compute both "
                                   "sides and choose with where(), or use cond()",
                                   describe_op(before_, op), describe_op(after_, op)));
        return;
      }
    }
    // If both programs have equally many outputs, surplus ops come from a branch on the host.
    // Otherwise they come from a tensor handle that existed for only one of the programs.
    distance_ += kOpWeight * (std::max(before_.num_ops(), after_.num_ops()) - common);
    if (before_.num_ops() == after_.num_ops() || before_.outputs.size() != after_.outputs.size()) {
      return;
    }
    const bool grew = after_.num_ops() > common;
    const Program& longer = grew ? after_ : before_;
    add(0, fmt::format("{} {}: if a branch on the host causes this, compute both sides and choose "
                       "with where()",
                       describe_op(longer, common), grew ? "is new" : "isn't computed any more"));
  }

  /// Compares the ops with this number. Constants with different values count as equal, but add a
  /// cause.
  bool same_op(OpId op) {
    if (before_.kind(op) != after_.kind(op) ||
        !std::ranges::equal(before_.op_operands(op), after_.op_operands(op)) ||
        before_.type(before_.result(op)) != after_.type(after_.result(op))) {
      return false;
    }
    switch (table_of(before_.kind(op))) {
      case Form::elements:
        if (!std::ranges::equal(constant_bytes(before_, op), constant_bytes(after_, op))) {
          add(kConstantWeight,
              fmt::format("constant {} -> {}{}: pass changing numbers as weft::scalar(v)",
                          constant_text(before_, op), constant_text(after_, op),
                          at(after_, after_.op_locs[op])));
        }
        return true;
      case Form::constraint: return true;  // compare_shardings() compares these
      case Form::target: return before_.custom_target(op) == after_.custom_target(op);
      default: return std::ranges::equal(before_.op_attrs(op), after_.op_attrs(op));
    }
  }

  void compare_outputs() {
    const std::size_t common = std::min(before_.outputs.size(), after_.outputs.size());
    for (std::size_t i = 0; i < common; ++i) {
      const ProgramOutput& old = before_.outputs[i];
      const ProgramOutput& now = after_.outputs[i];
      if (old.name == now.name && old.value == now.value) continue;
      add(kOutputWeight, fmt::format("output {} -> {}: the handles of other tensors are alive",
                                     describe(before_, old), describe(after_, now)));
      return;
    }
    for (std::size_t i = common; i < before_.outputs.size(); ++i) {
      add(kOutputWeight, fmt::format("output {} is gone: its handle isn't kept alive any more",
                                     describe(before_, before_.outputs[i])));
    }
    for (std::size_t i = common; i < after_.outputs.size(); ++i) {
      add(kOutputWeight,
          fmt::format("output {} is new: its handle was kept alive; let it end before the sync()",
                      describe(after_, after_.outputs[i])));
    }
  }

  void compare_shardings() {
    for (std::size_t i = 0; i < after_.inputs.size(); ++i) {
      if (before_.inputs[i].sharding == after_.inputs[i].sharding) continue;
      add(kInputWeight,
          fmt::format("{} has another sharding than before", describe(after_, after_.inputs[i])));
    }
    const std::size_t common = std::min(before_.constraints.size(), after_.constraints.size());
    for (std::size_t i = 0; i < common; ++i) {
      if (before_.constraints[i] == after_.constraints[i]) continue;
      add(kInputWeight, "a mark_sharding of a computed value has another spec");
    }
  }

  const Program& before_;
  const Program& after_;
  std::vector<std::string> causes_;
  std::size_t distance_ = 0;
};

}  // namespace

Differences differences(const Program& before, const Program& after) {
  return Comparison(before, after).run();
}

}  // namespace weft
