// Compares docs/ops.md with the rows of the table of ops. GOLDEN_UPDATE=1 rewrites the page.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "spmd/ops/row.hpp"
#include "spmd/rules/custom_rule.hpp"
#include "tests/support/golden.hpp"

namespace weft::ops_page_test {
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
    case Gradient::How::loop: return "with its loop";
    case Gradient::How::refused: return "refused";
  }
  return "";
}

std::string_view kind_of(const OpRow& row) {
  if (row.traits->meets) return "collective";
  if (*row.decompose != nullptr) return "composite";
  return row.traits->elementwise ? "elementwise" : "";
}

/// Breaks `text` into lines of at most 118 columns. All lines but the first begin with `indent`.
std::string folded(std::string_view text, std::string_view indent = "") {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > 0 && column + 1 + end > 118) {
      result += '\n';
      result += indent;
      column = indent.size();
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string entry(OpKind kind, const OpRow& row) {
  std::string text = fmt::format("- `{}`: {}", to_string(kind), *row.doc);
  if (text.back() != '.') text += '.';
  text += fmt::format(" Operands: {}.", operands_of(row));
  if (!row.attrs->empty()) text += fmt::format(" Attributes: {}.", attributes_of(row));
  if (const std::string rule = rule_of(row); !rule.empty()) {
    text += fmt::format(" Sharding rule: {}.", rule);
  }
  text += fmt::format(" Gradient: {}.", gradient_of(row));
  if (const std::string_view kind_text = kind_of(row); !kind_text.empty()) {
    text += fmt::format(" A{} {}{}.", kind_text.front() == 'e' ? "n" : "", kind_text,
                        kind_text == "elementwise" ? " op" : "");
  }
  return folded(text, "  ") + '\n';
}

std::string page() {
  std::string text = fmt::format(
      "# Ops\n\n{}\n\n{}\n\n",
      folded(
          "Printed from the rows in `spmd/ops/`: `GOLDEN_UPDATE=1 build/release/bin/unit_program` "
          "rewrites it. [adding_an_op.md](adding_an_op.md) says how to add an op. Programs and "
          "plans consist of these ops; users call the functions of `include/weft/`."),
      folded("A sharding rule names the dims of the operands and of the result. Dims with the same "
             "name have the same size and are cut alike. The name `d` stands for any number of "
             "dims if the op takes any. A composite has a kernel. Primitives replace it if a dim "
             "that its rule holds whole is cut."));
  for (std::uint16_t number = 0; number < kOpNumberMax; ++number) {
    const auto kind = static_cast<OpKind>(number);
    if (const OpRow* row = find_row(kind)) text += entry(kind, *row);
  }
  return text;
}

TEST(OpsPage, IsWhatTheRowsSay) { testing::expect_golden("../../docs/ops.md", page()); }

}  // namespace
}  // namespace weft::ops_page_test
