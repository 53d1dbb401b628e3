#include <weft/spmd/program/evaluate_index.hpp>

#include <algorithm>

#include <weft/spmd/program/evaluate.hpp>
#include <weft/spmd/program/index_check.hpp>
#include <weft/spmd/program/philox.hpp>

namespace weft {
namespace {

/// Elements of a row, given those of all `rows`.
std::ptrdiff_t row_size(const Shape& rows) {
  std::ptrdiff_t size = 1;
  for (int dim = 1; dim < rows.size(); ++dim) size *= rows[dim];
  return size;
}

bool is_row(double index, const Shape& rows) {
  return index >= 0 && index < static_cast<double>(rows[0]);
}

Elements gather(const Elements& table, const Elements& index, const Shape& rows) {
  const std::ptrdiff_t size = row_size(rows);
  Elements result;
  for (const double i : index) {
    if (is_row(i, rows)) {
      const auto row = table.begin() + static_cast<std::ptrdiff_t>(i) * size;
      result.insert(result.end(), row, row + size);
    } else {
      result.insert(result.end(), static_cast<std::size_t>(size), 0.0);
    }
  }
  return result;
}

Elements scatter(const Elements& index, const Elements& updates, const Shape& rows) {
  const std::ptrdiff_t size = row_size(rows);
  Elements result(static_cast<std::size_t>(rows.num_elements()), 0.0);
  auto update = updates.begin();
  for (const double i : index) {
    if (is_row(i, rows)) {
      const auto row = result.begin() + static_cast<std::ptrdiff_t>(i) * size;
      std::transform(row, row + size, update, row, std::plus<>());
    }
    update += size;
  }
  return result;
}

Elements checked(const Elements& index, const IndexCheck& check) {
  for (const double i : index) {
    const auto value = static_cast<std::int64_t>(i);
    if (!check.allows(value)) check.refuse(value);
  }
  return index;
}

/// Where a part of x lies that begins at `starts`, each clamped so that the part lies within.
std::vector<std::int64_t> window(const Shape& whole, const Shape& part,
                                 std::span<const Elements* const> starts) {
  std::vector<std::int64_t> start;
  for (int dim = 0; dim < whole.size(); ++dim) {
    const auto asked = static_cast<std::int64_t>(starts[static_cast<std::size_t>(dim)]->front());
    start.push_back(std::clamp<std::int64_t>(asked, 0, whole[dim] - part[dim]));
  }
  return places(whole, part, start, std::vector<std::int64_t>(start.size(), 1));
}

}  // namespace

Elements evaluate_indexing(const Program& program, OpId op,
                           std::span<const Elements* const> operands) {
  const Shape& shape = program.shape(program.result(op));
  const Elements& first = *operands[0];
  const Elements& second = operands.size() > 1 ? *operands[1] : first;
  const Shape& whole = program.shape(program.op_operands(op)[0]);
  switch (program.kind(op)) {
    case OpKind::check_index: return checked(first, IndexCheck(program, op));
    case OpKind::gather: return gather(first, second, whole);
    case OpKind::scatter: return scatter(first, second, shape);
    case OpKind::dynamic_slice: return take(first, window(whole, shape, operands.subspan(1)));
    default: break;
  }
  WEFT_CHECK(program.kind(op) == OpKind::dynamic_update_slice, to_string(program.kind(op)));
  Elements result = first;
  const auto where = window(whole, program.shape(program.op_operands(op)[1]), operands.subspan(2));
  for (std::size_t i = 0; i < where.size(); ++i) {
    result[static_cast<std::size_t>(where[i])] = second[i];
  }
  return result;
}

Elements random_bits(const Shape& shape, const Elements& state) {
  PhiloxBlock words{};
  std::ranges::transform(state, words.begin(),
                         [](double word) { return static_cast<std::uint32_t>(word); });
  Elements result(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = generator_block(words, i / 4)[i % 4];
  }
  return result;
}

}  // namespace weft
