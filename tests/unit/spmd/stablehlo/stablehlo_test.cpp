// Compares texts of StableHLO with golden ones, and checks the form of the text of every op: names,
// types and scopes of values. property_stablehlo runs the texts.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "spmd/ops/row.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/stablehlo/stablehlo.hpp"
#include "spmd/stablehlo/stablehlo_target.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/custom_ops.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/mlp.hpp"
#include "tests/support/op_examples.hpp"

namespace weft::stablehlo_test {
namespace {

using testing::expect_error;
using testing::expect_golden;
using testing::OpExample;

const Mesh kMesh({2, 2}, {"data", "model"});
const Mesh kOneChip({1}, {"data"});

/// Reads a text line by line and returns its faults: a value that is read before its definition or
/// outside of its region, a name that is defined twice, an operand whose type isn't that of its
/// definition, braces that don't match.
class HloReader {
 public:
  std::vector<std::string> faults(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      line_ = line;
      read();
    }
    if (!scopes_.empty()) report("a region isn't closed");
    return faults_;
  }

 private:
  using Types = std::vector<std::string>;

  void report(std::string_view what) { faults_.push_back(fmt::format("{} in: {}", what, line_)); }

  void define(const std::string& name, const std::string& type) {
    if (!all_.insert(name).second) report(name + " is defined twice");
    if (scopes_.empty()) return report("a value is outside of every region");
    scopes_.back()[name] = type;
  }

  const std::string* find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return &found->second;
    }
    return nullptr;
  }

  /// Returns the parts of a list that is separated by commas outside of brackets.
  static Types parts(std::string_view list) {
    Types all;
    int depth = 0;
    std::string part;
    for (const char c : list) {
      depth += c == '<' || c == '(' || c == '{' ? 1 : c == '>' || c == ')' || c == '}' ? -1 : 0;
      if (c == ',' && depth == 0) {
        all.push_back(std::exchange(part, ""));
      } else if (c != ' ' || !part.empty()) {
        part += c;
      }
    }
    if (!part.empty()) all.push_back(part);
    return all;
  }

  static std::string between(std::string_view text, std::string_view begin, std::string_view end) {
    const std::size_t from = text.find(begin);
    if (from == std::string_view::npos) return "";
    const std::string_view rest = text.substr(from + begin.size());
    return std::string(rest.substr(0, rest.find(end)));
  }

  void define_all(const std::string& list) {
    for (const std::string& part : parts(list)) {
      const std::size_t colon = part.find(": ");
      const std::string type = part.substr(colon + 2);
      define(part.substr(0, colon), type.substr(0, type.find(" {")));
    }
  }

  /// Reads ": (operand types) -> result types" at the end of an op.
  void check_types(const Types& operands, const Types& names) {
    const std::size_t begin = line_.rfind(" : (");
    const std::size_t arrow = line_.rfind(") -> ");
    if (begin == std::string::npos || arrow == std::string::npos) return report("no types");
    const Types types = parts(line_.substr(begin + 4, arrow - begin - 4));
    if (types.size() != operands.size()) report("the numbers of operands and types differ");
    for (std::size_t i = 0; i < std::min(types.size(), operands.size()); ++i) {
      const std::string* type = find(operands[i]);
      if (type == nullptr) {
        report(operands[i] + " isn't defined here");
      } else if (*type != types[i]) {
        report(operands[i] + " is " + *type);
      }
    }
    std::string results = line_.substr(arrow + 5);
    results = results.substr(0, results.find(" loc("));
    if (results.starts_with('(')) results = results.substr(1, results.size() - 2);
    const Types result_types = parts(results);
    if (result_types.size() != names.size()) return report("the numbers of results differ");
    for (std::size_t i = 0; i < names.size(); ++i) define(names[i], result_types[i]);
  }

  /// An op that has regions begins on one line and ends, with its types, on another.
  struct Op {
    Types operands;
    Types names;
  };

  static Op begin_of(const std::string& line) {
    Op op;
    const std::size_t quote = line.find('"');
    const std::string name = between(line.substr(0, quote), "%", " ");
    op.operands = parts(between(line.substr(quote), "(", ")"));
    if (name.empty()) return op;
    const std::size_t colon = name.find(':');
    if (colon == std::string::npos) return {op.operands, {"%" + name}};
    for (int i = 0; i < std::stoi(name.substr(colon + 1)); ++i) {
      op.names.push_back(fmt::format("%{}#{}", name.substr(0, colon), i));
    }
    return op;
  }

  void read() {
    const std::string trimmed = line_.substr(std::min(line_.find_first_not_of(' '), line_.size()));
    if (trimmed.starts_with("module @")) {
      scopes_.emplace_back();
    } else if (trimmed.starts_with("func.func @main(")) {
      scopes_.emplace_back();
      define_all(between(trimmed, "@main(", ") -> "));
    } else if (trimmed.starts_with("^bb0(")) {
      define_all(between(trimmed, "^bb0(", "):"));
    } else if (trimmed.starts_with("%") || trimmed.starts_with("\"")) {
      const Op op = begin_of(trimmed);
      if (!trimmed.ends_with("({")) return check_types(op.operands, op.names);
      open_.push_back(op);
      scopes_.emplace_back();
    } else if (trimmed.starts_with("}")) {
      close(trimmed);
    } else if (!trimmed.empty()) {
      report("no op");
    }
  }

  void close(const std::string& trimmed) {
    if (scopes_.empty()) return report("a brace too many");
    scopes_.pop_back();
    if (trimmed == "}, {") {
      scopes_.emplace_back();
    } else if (trimmed != "}") {
      if (open_.empty()) return report("no op has this region");
      const Op op = open_.back();
      open_.pop_back();
      check_types(op.operands, op.names);
    }
  }

  std::string line_;
  std::vector<std::string> faults_;
  std::set<std::string> all_;
  std::vector<std::map<std::string, std::string>> scopes_;
  std::vector<Op> open_;
};

void expect_form(const StableHlo& made) {
  const std::vector<std::string> faults = HloReader().faults(made.text);
  EXPECT_TRUE(faults.empty()) << fmt::format("{}\n{}", fmt::join(faults, "\n"), made.text);
}

TEST(HloReader, FindsFaults) {
  const std::string good =
      "module @m {\n  func.func @main(%arg0: tensor<f32>) -> (tensor<f32>) {\n"
      "    %0 = \"stablehlo.negate\"(%arg0) : (tensor<f32>) -> tensor<f32>\n"
      "    \"func.return\"(%0) : (tensor<f32>) -> ()\n  }\n}\n";
  EXPECT_TRUE(HloReader().faults(good).empty());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return HloReader().faults(text).size();
  };
  EXPECT_EQ(with("negate\"(%arg0)", "negate\"(%7)"), 1U);
  EXPECT_EQ(with("(tensor<f32>) -> tensor<f32>", "(tensor<i32>) -> tensor<f32>"), 1U);
  EXPECT_EQ(with("%0 = ", "%arg0 = "), 2U);
  EXPECT_EQ(with("}\n}\n", "}\n"), 1U);
}

class EveryOp : public ::testing::TestWithParam<OpExample> {
 protected:
  static void SetUpTestSuite() { testing::custom_target(testing::CustomKind::affine, 2); }
};

/// Checks the op's texts for a chip of the mesh, with both forms of collectives.
TEST_P(EveryOp, HasATextOfGoodForm) {
  const OpExample& example = GetParam();
  Program program = parse_program(testing::text_of(example), kMesh);
  verify(program, kMesh);
  if (example.cut_input.empty()) {
    if (!program.inputs.empty() && program.shape(program.inputs[0].value).size() > 0) {
      program.inputs[0].sharding = Sharding::closed();
      program.inputs[0].sharding.dims[0] = kMesh.axis_atoms(0);
    }
    program = compile(program, kMesh, kStableHloTarget).program;
  }
  for (const CollectiveForm form : {CollectiveForm::replicas, CollectiveForm::calls}) {
    for (const bool detects_anomaly : {false, true}) {
      const StableHlo made =
          to_stablehlo(program, kMesh, "it",
                       {.collectives = form,
                        .homes = std::vector<OutputHome>(program.outputs.size(), OutputHome::place),
                        .detects_anomaly = detects_anomaly});
      expect_form(made);
      EXPECT_EQ(made.text, to_stablehlo(program, kMesh, "it",
                                        {.collectives = form,
                                         .homes = {program.outputs.size(), OutputHome::place},
                                         .detects_anomaly = detects_anomaly})
                               .text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryOp, ::testing::ValuesIn(testing::op_examples()),
                         [](const auto& tested) {
                           const OpExample& example = tested.param;
                           return fmt::format("{}{}{}", to_string(example.kind),
                                              example.variant.empty() ? "" : "_", example.variant);
                         });

Plan step_plan() {
  testing::Mlp mlp;
  mlp.x = mlp.y = PartitionSpec{{"data"}, {}};
  mlp.fc1 = mlp.fc2 = PartitionSpec{{}, {}};
  return compile(mlp.program(kMesh), kMesh, kStableHloTarget);
}

TEST(StableHlo, WritesATrainingStep) {
  const Plan plan = step_plan();
  StableHloOptions options;
  for (const ProgramOutput& output : plan.program.outputs) {
    options.homes.push_back(output.updates >= 0 ? OutputHome::updated : OutputHome::fresh);
  }
  const StableHlo made = to_stablehlo(plan.program, kMesh, "mlp", options);
  expect_form(made);
  expect_golden("stablehlo/step.mlir", made.text);
  ASSERT_EQ(made.arguments.size(), plan.program.inputs.size());
  ASSERT_EQ(made.results.size(), plan.program.outputs.size());
  for (std::size_t i = 0; i < made.arguments.size(); ++i) {
    const StableHloArgument& argument = made.arguments[i];
    EXPECT_EQ(argument.type, plan.program.type(plan.program.inputs[i].value));
    const bool is_updated = std::ranges::count(plan.program.outputs, static_cast<std::int32_t>(i),
                                               &ProgramOutput::updates) > 0;
    EXPECT_EQ(argument.result >= 0, is_updated) << i;
    if (argument.result < 0) continue;
    const auto output = static_cast<std::size_t>(argument.result);
    EXPECT_EQ(plan.program.outputs[output].updates, static_cast<std::int32_t>(i));
  }
}

TEST(StableHlo, GivesEachOutputAPlace) {
  const Plan plan = step_plan();
  const std::size_t num_inputs = plan.program.inputs.size();
  const std::size_t num_outputs = plan.program.outputs.size();
  const StableHlo made = to_stablehlo(
      plan.program, kMesh, "mlp",
      {.collectives = CollectiveForm::calls, .homes = {num_outputs, OutputHome::place}});
  expect_form(made);
  ASSERT_EQ(made.arguments.size(), num_inputs + num_outputs + 1);
  for (std::size_t i = 0; i < num_outputs; ++i) {
    const StableHloArgument& place = made.arguments[num_inputs + i];
    EXPECT_EQ(place.role, StableHloArgument::Role::place);
    EXPECT_EQ(place.number, i);
    EXPECT_EQ(place.result, static_cast<std::int32_t>(i));
    EXPECT_EQ(place.type, plan.program.type(plan.program.outputs[i].value));
  }
  EXPECT_EQ(made.arguments.back().role, StableHloArgument::Role::position);
  std::vector<OpId> collectives;
  for (OpId op = 0; op < plan.program.num_ops(); ++op) {
    if (is_collective(plan.program.kind(op))) collectives.push_back(op);
  }
  EXPECT_EQ(made.collectives, collectives);
}

/// The collective is in a loop with a test, so the token and the faults pass through it.
constexpr std::string_view kLoop =
    R"(program(%0: f32[4] data "x" [{"data"}], %1: i32[4] data "i" [{}]) {
  %2 = loop : i32[]
  %3 = carry %2, %0 : f32[4]
  %4 = constant {value = 3} : i32[]
  %5 = compare %2, %4 {direction = lt} : pred[]
  %6 = test %2, %5 : pred[]
  %7 = all_reduce %3 {atoms = {"data"}, kind = add} : f32[4]
  %8 = check_index %1 {limit_ignored = [6, -100]} : i32[4]
  %9 = next %2, %3, %7 : f32[4]
  %10 = iota {dim = 0, atoms = {"data"}} : f32[4]
  %11 = multiply %9, %10 : f32[4]
  return %11 "y" [{"data"}]
})";

TEST(StableHlo, WritesCollectivesInALoopAsCalls) {
  const Program program = parse_program(kLoop, kMesh);
  const StableHlo made =
      to_stablehlo(program, kMesh, "a loop", {.collectives = CollectiveForm::calls});
  expect_form(made);
  expect_golden("stablehlo/loop.mlir", made.text);
  EXPECT_EQ(made.collectives.size(), 1U);
  ASSERT_EQ(made.results.size(), 2U);
  EXPECT_EQ(made.results[1].role, StableHloResult::Role::faults);
}

TEST(StableHlo, RefusesHomesThatDontFit) {
  const Program program = parse_program(kLoop, kMesh);
  expect_error(Errc::invalid_argument, {"homes", "2 entries", "1 outputs"}, [&] {
    to_stablehlo(program, kMesh, "it", {.homes = {OutputHome::place, OutputHome::place}});
  });
  expect_error(Errc::invalid_argument, {"homes[0]", "\"y\"", "updates no input"},
               [&] { to_stablehlo(program, kMesh, "it", {.homes = {OutputHome::updated}}); });
}

TEST(StableHlo, RefusesAGlobalProgram) {
  const auto example = std::ranges::find(testing::op_examples(), OpKind::enter, &OpExample::kind);
  const Program program = parse_program(testing::text_of(*example), kMesh);
  expect_error(Errc::invalid_argument, {"enter", "partition"},
               [&] { to_stablehlo(program, kMesh, "it"); });
}

}  // namespace
}  // namespace weft::stablehlo_test
