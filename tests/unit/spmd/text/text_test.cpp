#include "spmd/text/text.hpp"
#include "spmd/ops/fingerprint.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/unit/spmd/ops/every_op.hpp"

namespace weft::text_test {
namespace {

using testing::expect_error;

const Mesh kMesh({4, 2}, {"data", "model"});

TEST(Text, ReadsAsItIsWritten) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input(
      {DType::f32, {64, 64}}, InputKind::data, "x",
      Sharding::from_spec(kMesh, {{"data"}, {}}, std::vector<std::int64_t>{64, 64}, "x"));
  const ValueId w =
      program.add_input({DType::f32, {128, 64}}, InputKind::param, "fc1.weight", Sharding::open(2));
  builder.set_loc("digits.cpp:41");
  const ValueId y = builder.dot_general(x, w, {{}, {}, {1}, {1}});
  program.add_output(y, "y", Sharding::open(2));
  program.add_output(w, "fc1.weight", Sharding::open(2), 1);
  EXPECT_EQ(to_text(program, kMesh), R"(program(%0: f32[64,64] data "x" [{"data"}, {}],
        %1: f32[128,64] param "fc1.weight" [{?}, {?}]) {
  %2 = dot_general %0, %1 {contracting = [1] x [1]} : f32[64,128]  // digits.cpp:41
  return %2 "y" [{?}, {?}],
         %1 "fc1.weight" [{?}, {?}] updates 1
}
)");
}

TEST(Text, TripKeepsEveryArray) {
  const Program program = testing::every_op(kMesh);
  const std::string text = to_text(program, kMesh);
  const Program parsed = parse_program(text, kMesh);
  EXPECT_EQ(to_text(parsed, kMesh), text);
  EXPECT_EQ(fingerprint(parsed), fingerprint(program));
  EXPECT_EQ(parsed.value_types, program.value_types);
  EXPECT_EQ(parsed.value_ops, program.value_ops);
  EXPECT_EQ(parsed.op_kinds, program.op_kinds);
  EXPECT_EQ(parsed.operand_begin, program.operand_begin);
  EXPECT_EQ(parsed.operands, program.operands);
  EXPECT_EQ(parsed.results, program.results);
  EXPECT_EQ(parsed.attr_begin, program.attr_begin);
  EXPECT_EQ(parsed.attrs, program.attrs);
  EXPECT_EQ(parsed.op_locs, program.op_locs);
  EXPECT_EQ(parsed.const_pool, program.const_pool);
  EXPECT_EQ(parsed.constraints, program.constraints);
  EXPECT_EQ(parsed.custom_targets, program.custom_targets);
  EXPECT_EQ(parsed.locs, program.locs);
}

TEST(Text, TakesAnEmptyProgram) {
  const Program program = parse_program("program() { return }", kMesh);
  EXPECT_EQ(program.num_values(), 0U);
  EXPECT_EQ(to_text(program, kMesh), "program() {\n  return\n}\n");
}

TEST(Text, PrintsAttributesByName) {
  const std::string text = to_text(testing::every_op(kMesh), kMesh);
  for (const std::string_view line :
       {R"(= iota {dim = 0, atoms = {"data"}})", "= compare %0, %0 {direction = lt} :",
        "{values = [0.1, -0, inf, 1e-45, 3.4028235e+38, 0xffc00005]} : f32[6]",
        "{value = 2.5} : bf16[2,2]", "{batch = [0] x [0], contracting = [1] x [1]} : f32[8]",
        "{kind = max, dims = [0, 1]} : f32[]",
        "{lhs = [0, 1, 2, 3], rhs = [1, 0, 2, 3], result = [3, 0, 1, 2], stride = [2, 1], "
        "low = [1, -1], high = [2, 0], lhs_dilation = [1, 2], rhs_dilation = [1, 3], reversed = 1}",
        "rhs_dilation = [1], reversed = 0, group = [1, 1, 0]}",
        "{kind = add, size = [1, 1, 3, 1], stride = [1, 1, 1, 1], low = [0, 0, 0, -1], "
        "high = [0, 0, 0, 0], base_dilation = [1, 1, 1, 2], dilation = [1, 1, 2, 3]}",
        R"({sharding = [{?}, {"data":1}] unreduced{"model"} reduce=min replicated{"data":0}})",
        R"({from = [{"data":0}, {}], to = [{"model"}, {}]})"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " isn't in\n" << text;
  }
}

struct BadText {
  const char* text;
  const char* place;
  const char* words;
};

/// Wrong texts. Each follows the line `program(...) {`.
const BadText kMistakes[] = {
    {"%1 = matmul %0 : f32[8]", "line 2, column 6", "\"matmul\" isn't an op"},
    {"%1 = copy %0 : f33[8]", "line 2, column 16", "\"f33\" isn't one of"},
    {"%1 = copy %0 : f32[-8]", "line 2, column 16", "size -8"},
    {"%1 = copy %0 : f32[4]", "line 2, column 1", "copy gives f32[8], not f32[4]"},
    {"%1 = copy %2 : f32[8]", "line 2, column 12", "%2 isn't defined"},
    {"%0 = copy %0 : f32[8]", "line 2, column 1", "%0 is already defined"},
    {"%1 = copy %0, : f32[8]", "line 2, column 15", "expected '%'"},
    {"%1 = copy %0 {dim = 0} : f32[8]", "line 2, column 15", "copy has no attributes"},
    {"%1 = copy %99999999999 : f32[8]", "line 2, column 12", "isn't a value"},
    {"%1 = add %0 : f32[8]", "line 2, column 1", "has 1 operands; it takes 2"},
    {"%1 = transpose %0 {dims = [0]} : f32[8]", "line 2, column 20",
     "expected 'perm', found 'dims'"},
    {"%1 = constant {value = 1.5} : i32[]", "line 2, column 15",
     "'1.5' isn't a value of dtype i32"},
    {"%1 = constant {value = 3000000000} : i32[]", "line 2, column 15",
     "isn't a value of dtype i32"},
    {"%1 = constant {value = x} : f32[]", "line 2, column 15", "'x' isn't a value of dtype f32"},
    {"%1 = constant {values = [1, 2]} : f32[3]", "line 2, column 1", "8 are given"},
    {"%1 = all_gather %0 {atoms = {\"data\", \"data\"}, dim = 0} : f32[32]", "line 2, column 38",
     "is given twice"},
    {"%1 = all_gather %0 {atoms = {\"fsdp\"}, dim = 0} : f32[32]", "line 2, column 30",
     "no axis \"fsdp\"; the mesh is (4,2)"},
    {"%1 = all_gather %0 {atoms = {\"data\":2}, dim = 0} : f32[32]", "line 2, column 30",
     "has 2 atoms"},
    {"%1 = reduce %0 {kind = sum, dims = [0]} : f32[]", "line 2, column 24",
     "'sum' isn't a known reduce kind"},
    {"%1 = dot_general %0, %0 {contracting = [0] x []} : f32[]", "line 2, column 40",
     "differ in length"},
    {"%1 = slice %0 {start = [0], limit = [8, 8], stride = [1]} : f32[8]", "line 2, column 29",
     "differ in length"},
    {"%1 = convolution %0, %0 {lhs = [0], rhs = [0, 1], result = [0]} : f32[8]",
     "line 2, column 26", "lhs has 1 entries; expected 2 or more"},
    {"%1 = normalize %0 {center = 1, eps = inf} : f32[8]", "line 2, column 38",
     "'inf' isn't a finite number"},
    {"%1 = sharding_constraint %0 {sharding = [{}, {}]} : f32[8]", "line 2, column 41",
     "more than 1 dims"},
    {"%1 = sharding_constraint %0 {sharding = [{}] priority{\"data\"=16}} : f32[8]",
     "line 2, column 62", "0..15"},
    {"return %0 \"y\" [{}] updates x }", "line 2, column 28", "expected an integer, found 'x'"},
    {"return %0 \"y\" [{}] updates 5000000000 }", "line 2, column 28", "out of range"},
    {"return %0 \"y [{}] }", "line 2, column 11", "no closing quote"},
    {"return %0 \"\\xg0\" [{}] }", "line 2, column 14", "two hexadecimal digits"},
    {"return %0 \"y\" [{}] } }", "line 2, column 22", "text follows"},
    {"return %0 \"y\" [{}]", "line 2, column 19", "the end of the text"},
    {"", "line 2, column 1", "expected '%', found the end of the text"},
};

TEST(Text, NamesThePlaceOfAMistake) {
  const std::string head = "program(%0: f32[8] data \"x\" [{}]) {\n";
  for (const BadText& bad : kMistakes) {
    expect_error(Errc::invalid_argument, {"program text", bad.place, bad.words},
                 [&] { parse_program(head + bad.text, kMesh); });
  }
}

TEST(Text, RefusesAShardingWithTooFewDims) {
  expect_error(Errc::invalid_argument, {"line 1, column 31", "1 dims; it needs 2"},
               [] { parse_program("program(%0: f32[8,2] data \"x\" [{}]) { return }", kMesh); });
}

TEST(Text, RefusesWhatVerifyRefuses) {
  expect_error(Errc::invalid_argument, {"program text", "updates input 3"}, [] {
    parse_program("program(%0: f32[8] param \"x\" [{}]) { return %0 \"y\" [{}] updates 3 }", kMesh);
  });
  expect_error(Errc::invalid_argument, {"%0 isn't defined; values are numbered"},
               [] { parse_program("program(%1: f32[8] param \"x\" [{}]) { return }", kMesh); });
}

/// Every text that is cut short is refused or is another complete program. The parser never
/// crashes.
TEST(Text, EveryPrefixIsRefused) {
  const std::string text = to_text(testing::every_op(kMesh), kMesh);
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_THROW(parse_program(std::string_view(text).substr(0, size), kMesh), Error) << size;
  }
}

}  // namespace
}  // namespace weft::text_test
