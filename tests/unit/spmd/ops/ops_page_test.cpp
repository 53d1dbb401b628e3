// docs/ops.md is printed from the rows: GOLDEN_UPDATE=1 writes it anew.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "spmd/ops/row.hpp"
#include "spmd/rules/custom_rule.hpp"
#include "tests/support/golden.hpp"

namespace weft {
namespace {

std::string form_of(const Attr& attr) {
  switch (attr.form) {
    case Form::integer: return attr.is_list ? "integers" : "integer";
    case Form::flag: return "0 or 1";
    case Form::number: return "f64";
    case Form::reduce_kind: return "add, max or min";
    case Form::direction: return "eq, ne, lt, le, gt or ge";
    case Form::atoms: return attr.is_list ? "parts of mesh axes, by dim" : "parts of mesh axes";
    case Form::pairs: return "dims x dims";
    case Form::elements: return "elements";
    case Form::constraint: return "sharding";
    case Form::target: return "target and rule";
  }
  return "";
}

std::string attributes_of(const OpRow& row) {
  std::string text;
  for (const Attr& attr : *row.attrs) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}{}", attr.name, form_of(attr), attr.optional ? ", or none" : "");
  }
  return text;
}

std::string operands_of(const OpRow& row) {
  const OperandCount count = *row.operands;
  if (count.least == count.most) return std::to_string(count.least);
  return fmt::format("{} to {}", count.least, count.most);
}

std::string rule_of(const OpRow& row) {
  if (row.rule->function != nullptr) return "by its attributes";
  return row.rule->text.num_tensors == 0 ? "" : fmt::format("`{}`", to_text(row.rule->text));
}

std::string_view gradient_of(const OpRow& row) {
  switch (row.gradient->how) {
    case Gradient::How::constant: return "none";
    case Gradient::How::function: return "yes";
    case Gradient::How::decomposition: return "of its decomposition";
    case Gradient::How::target: return "the target's";
    case Gradient::How::refused: return "refused";
  }
  return "";
}

std::string page() {
  std::string text =
      "# Ops\n\n"
      "Printed from the rows in `spmd/ops/` (`GOLDEN_UPDATE=1 unit_program` writes it anew); "
      "`docs/adding_an_op.md`\nsays how one is added. Programs and plans consist of these ops; "
      "users call the functions of `include/weft/`.\nThe sharding rule names the dims: those of "
      "one "
      "name have one size and are cut alike; `d*` stands for any\nnumber of dims. A composite is "
      "one op that has a kernel, and decomposes into primitives where its rule\nholds a dim whole "
      "that is cut.\n\n"
      "| op | result | operands | attributes | sharding rule | gradient | kind |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (std::uint16_t number = 0; number < kOpNumberMax; ++number) {
    const OpRow* row = find_row(static_cast<OpKind>(number));
    if (row == nullptr) continue;
    const Traits& traits = *row->traits;
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n",
                        to_string(static_cast<OpKind>(number)), *row->doc, operands_of(*row),
                        attributes_of(*row), rule_of(*row), gradient_of(*row),
                        traits.meets                 ? "collective"
                        : *row->decompose != nullptr ? "composite"
                        : traits.elementwise         ? "elementwise"
                                                     : "");
  }
  return text;
}

TEST(OpsPage, IsWhatTheRowsSay) { testing::expect_golden("../../docs/ops.md", page()); }

}  // namespace
}  // namespace weft
