#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "spmd/control/manual_axes.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/tensor/compile_cache.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/recording.hpp"
#include "spmd/text/element_text.hpp"

namespace weft {
namespace {

/// Returns whether passes handle the op in the same way whatever the value of a constant that it
/// reads. If only such ops read a constant, the program with an input in its place computes the
/// same bits.
bool reads_any_number(OpKind kind) {
  return is_elementwise(kind) || kind == OpKind::broadcast_in_dim;
}

/// Returns the constants with a single element that may become inputs, because reads_any_number()
/// holds for all ops that read them. Excludes constants that a shard_map function reads, directly
/// or through values computed only from constants, because an input would have to enter the
/// function.
std::vector<OpId> numbers_of(const Program& program) {
  std::vector<bool> fixed(program.num_values(), false);
  std::optional<ManualAxes> manual;
  if (ManualAxes::has_any(program)) manual.emplace(program);
  const auto is_fixed = [&](OpId op) {
    if (!reads_any_number(program.kind(op))) return true;
    const ValueId result = program.result(op);
    if (!manual) return false;
    return (*manual)[result].manual != 0 || ((*manual)[result].anywhere && fixed[result]);
  };
  for (OpId op = program.num_ops(); op-- > 0;) {
    if (!is_fixed(op)) continue;
    for (const ValueId operand : program.op_operands(op)) fixed[operand] = true;
  }
  std::vector<OpId> numbers;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) != OpKind::constant || !program.is_fill(op)) continue;
    if (!fixed[program.result(op)]) numbers.push_back(op);
  }
  return numbers;
}

std::span<const std::byte> bytes_of(const Program& program, OpId number) {
  const auto attrs = program.op_attrs(number);
  return std::span(program.const_pool)
      .subspan(static_cast<std::size_t>(attrs[0]), static_cast<std::size_t>(attrs[1]));
}

/// Returns the program with inputs in place of these constants. They follow the program's own
/// inputs.
Program with_inputs(const Program& from, std::span<const OpId> numbers) {
  Program program;
  program.reserve(from);
  std::vector<ValueId> values(from.num_values(), kNoId);
  for (const ProgramInput& input : from.inputs) {
    values[input.value] =
        program.add_input(from.type(input.value), input.kind, input.name, input.sharding,
                          program.intern_loc(from.locs[input.loc]));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const TensorType& type = from.type(from.result(numbers[i]));
    const LocId loc = program.intern_loc(from.loc(numbers[i]));
    ValueId value = program.add_input({type.dtype, {}}, InputKind::runtime_scalar,
                                      fmt::format("number.{}", i), Sharding::closed(), loc);
    if (type.shape.size() > 0) {
      value = program.add_op(OpKind::broadcast_in_dim, {&value, 1}, {}, type, loc);
    }
    values[from.result(numbers[i])] = value;
  }
  append_ops(from, program, values);
  for (const ProgramOutput& output : from.outputs) {
    program.add_output(values[output.value], output.name, output.sharding, output.updates);
  }
  return program;
}

std::vector<HostData> values_of(const Program& program, std::span<const OpId> numbers) {
  std::vector<HostData> values;
  for (const OpId number : numbers) {
    const auto bytes = bytes_of(program, number);
    values.push_back(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
  }
  return values;
}

}  // namespace

/// The numbers in programs of one site that are equal except for these numbers.
struct ChangingNumbers::Form {
  std::vector<HostData> first;       ///< the numbers' values in the first of these programs
  std::vector<bool> changes;         ///< whether each number differed in a later program
  std::optional<Fingerprint> key{};  ///< key of the program with inputs for changing numbers

  std::vector<OpId> changing(const std::vector<OpId>& numbers) const {
    std::vector<OpId> chosen;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (changes[i]) chosen.push_back(numbers[i]);
    }
    return chosen;
  }
};

struct ChangingNumbers::Lifted {
  Program program;
  Fingerprint key{};
  std::vector<HostData> numbers{};  ///< values of the inputs added to the program
  std::string changed{};            ///< the numbers that became inputs just now
};

ChangingNumbers::ChangingNumbers() = default;
ChangingNumbers::~ChangingNumbers() = default;

Runtime::RunResult ChangingNumbers::run(Runtime& runtime, const Program& program,
                                        const Fingerprint& key, std::span<const Binding> bindings,
                                        RunSite site) {
  auto lifted = lift(program, key, site);
  if (!lifted) return runtime.run(program, key, bindings, site);
  site.num_numbers = lifted->numbers.size();
  site.numbers_changed = std::move(lifted->changed);
  std::vector<Binding> all(bindings.begin(), bindings.end());
  std::ranges::move(lifted->numbers, std::back_inserter(all));
  Runtime::RunResult result = runtime.run(lifted->program, lifted->key, all, site);
  result.input_buffers.resize(bindings.size());
  return result;
}

/// Returns the program with inputs in place of its changing numbers, or nothing if no number
/// changes.
std::optional<ChangingNumbers::Lifted> ChangingNumbers::lift(const Program& program,
                                                             const Fingerprint& key,
                                                             const RunSite& site) {
  if (site.function.empty()) return {};
  Site& known = sites_[{site.function, site.loc.file_name(), site.loc.line()}];
  if (known.constant.contains(key)) return {};
  const std::vector<OpId> numbers = numbers_of(program);
  const auto lifted = [&](Form& form, std::string changed) {
    const std::vector<OpId> changing = form.changing(numbers);
    Lifted result{.program = with_inputs(program, changing),
                  .numbers = values_of(program, changing),
                  .changed = std::move(changed)};
    result.key = fingerprint(result.program);
    return result;
  };
  // First tries the previous program's form, because a program usually has the same.
  if (known.last != nullptr && known.last->changes.size() == numbers.size()) {
    Lifted result = lifted(*known.last, {});
    if (result.key == known.last->key) return result;
  }
  const Fingerprint without_numbers = graph_key(with_inputs(program, numbers));
  auto [found, is_new] = known.forms.try_emplace(without_numbers);
  std::unique_ptr<Form>& form = found->second;
  if (is_new) {
    form = std::make_unique<Form>(
        Form{.first = values_of(program, numbers), .changes = std::vector(numbers.size(), false)});
    known.constant.insert(key);
    return {};
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto now = bytes_of(program, numbers[i]);
    if (form->changes[i] || std::ranges::equal(*form->first[i], now)) continue;
    form->changes[i] = true;
    const DType dtype = program.type(program.result(numbers[i])).dtype;
    const std::string& loc = program.loc(numbers[i]);
    std::string text =
        fmt::format("constant {} -> {}{}{}", element_text(dtype, form->first[i]->data()),
                    element_text(dtype, now.data()), loc.empty() ? "" : " at ", loc);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  if (std::ranges::find(form->changes, true) == form->changes.end()) {
    known.constant.insert(key);
    return {};
  }
  std::string changed = fmt::format("{}", fmt::join(texts, "; "));
  if (!changed.empty())
    changed += ": passed as an input from now on; use weft::scalar(v) for an input from the start";
  Lifted result = lifted(*form, std::move(changed));
  form->key = result.key;
  known.last = form.get();
  return result;
}

}  // namespace weft
