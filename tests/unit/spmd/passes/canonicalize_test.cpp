#include "spmd/passes/canonicalize.hpp"

#include <gtest/gtest.h>

#include "spmd/ops/verify.hpp"
#include "spmd/text/text.hpp"

namespace weft::canonicalize_test {
namespace {

/// Expects that the canonical form of the program `from` is the program `to`.
void expect_canonical(const std::string& from, const std::string& to, bool split_constants) {
  const Mesh mesh({2}, {"data"});
  const Program canonical = canonicalize(parse_program(from, mesh), split_constants);
  EXPECT_NO_THROW(verify(canonical, mesh));
  EXPECT_EQ(to_text(canonical, mesh), to_text(parse_program(to, mesh), mesh));
}

TEST(Canonicalize, RemovesWhatNoOutputNeedsButKeepsInputs) {
  expect_canonical(R"(program(%0: f32[4] data "x" [{}], %1: f32[4] data "y" [{}]) {
  %2 = tanh %1 : f32[4]
  %3 = negate %0 : f32[4]
  return %3 "z" [{}]
})",
                   R"(program(%0: f32[4] data "x" [{}], %1: f32[4] data "y" [{}]) {
  %2 = negate %0 : f32[4]
  return %2 "z" [{}]
})",
                   false);
}

TEST(Canonicalize, MergesEqualOpsAndEqualConstants) {
  expect_canonical(R"(program(%0: f32[4] data "x" [{}]) {
  %1 = constant {value = 2} : f32[4]
  %2 = multiply %0, %1 : f32[4]
  %3 = constant {value = 2} : f32[4]
  %4 = multiply %0, %3 : f32[4]
  %5 = multiply %1, %0 : f32[4]
  %6 = add %2, %4 : f32[4]
  return %6 "z" [{}], %5 "w" [{}]
})",
                   R"(program(%0: f32[4] data "x" [{}]) {
  %1 = constant {value = 2} : f32[4]
  %2 = multiply %0, %1 : f32[4]
  %3 = multiply %1, %0 : f32[4]
  %4 = add %2, %2 : f32[4]
  return %4 "z" [{}], %3 "w" [{}]
})",
                   false);
}

TEST(Canonicalize, KeepsEqualOpsOfDifferentTypesApart) {
  const std::string text = R"(program(%0: f32[4] data "x" [{}]) {
  %1 = convert %0 : bf16[4]
  %2 = convert %0 : f64[4]
  return %1 "z" [{}], %2 "w" [{}]
})";
  expect_canonical(text, text, false);
}

TEST(Canonicalize, GivesEachUseOfAConstantAnOpOfItsOwn) {
  expect_canonical(R"(program(%0: f32[4] data "x" [{}], %1: f32[] runtime_scalar "lr" []) {
  %2 = constant {value = 2} : f32[]
  %3 = broadcast_in_dim %2 {dims = []} : f32[4]
  %4 = multiply %3, %3 : f32[4]
  %5 = iota {dim = 0} : f32[4]
  %6 = add %4, %5 : f32[4]
  return %6 "z" [{}], %5 "i" [{}]
})",
                   R"(program(%0: f32[4] data "x" [{}], %1: f32[] runtime_scalar "lr" []) {
  %2 = constant {value = 2} : f32[]
  %3 = broadcast_in_dim %2 {dims = []} : f32[4]
  %4 = constant {value = 2} : f32[]
  %5 = broadcast_in_dim %4 {dims = []} : f32[4]
  %6 = multiply %3, %5 : f32[4]
  %7 = iota {dim = 0} : f32[4]
  %8 = add %6, %7 : f32[4]
  %9 = iota {dim = 0} : f32[4]
  return %8 "z" [{}], %9 "i" [{}]
})",
                   true);
}

TEST(Canonicalize, MergesConstraintsThatAskForTheSame) {
  expect_canonical(R"(program(%0: f32[4] data "x" [{}]) {
  %1 = sharding_constraint %0 {sharding = [{"data"}]} : f32[4]
  %2 = sharding_constraint %0 {sharding = [{"data"}]} : f32[4]
  %3 = sharding_constraint %0 {sharding = [{"data"?}]} : f32[4]
  %4 = add %1, %2 : f32[4]
  %5 = add %4, %3 : f32[4]
  return %5 "z" [{}]
})",
                   R"(program(%0: f32[4] data "x" [{}]) {
  %1 = sharding_constraint %0 {sharding = [{"data"}]} : f32[4]
  %2 = sharding_constraint %0 {sharding = [{"data"?}]} : f32[4]
  %3 = add %1, %1 : f32[4]
  %4 = add %3, %2 : f32[4]
  return %4 "z" [{}]
})",
                   false);
}

}  // namespace
}  // namespace weft::canonicalize_test
