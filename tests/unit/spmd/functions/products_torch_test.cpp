/// Compares products and derivatives with torch (tests/golden/torch/windows.py).

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <weft/ops/elementwise.hpp>
#include <weft/ops/products.hpp>

#include "tests/support/torch_ops.hpp"

namespace weft::products_torch_test {
namespace {

using testing::OpCase;
using testing::Operands;
using X = const Tensor&;

const char* const kGolden = "torch/product_ops.safetensors";

OpCase einsum_case(const std::string& name, const std::string& equation) {
  return {"einsum_" + name, [equation](Operands& of, X) {
            std::vector<Tensor> operands;
            for (const auto& [_, operand] : of) operands.push_back(operand);
            return einsum(equation, operands);
          }};
}

/// Returns sin(x) times the transpose of exp(x).
Tensor function(X x) { return matmul(sin(x), transpose(exp(x), 0, 1)); }

std::vector<OpCase> cases() {
  std::vector<OpCase> all{
      einsum_case("product", "ij,jk->ik"),
      einsum_case("batch", "bij,bkj->bik"),
      einsum_case("outer", "i,j->ji"),
      einsum_case("inner", "ij,ij->"),
      einsum_case("implied", "kj,ik"),
      einsum_case("ellipsis", "...ij,...jk->...ik"),
      einsum_case("ellipsis_last", "i...,j...->ij..."),
      einsum_case("ellipsis_implied", "...i,...i"),
      einsum_case("heads", "bshd,bthd->bhst"),
      einsum_case("three", "ai,bi,ci->abc"),
      einsum_case("elementwise", "ij,ij->ij"),
      einsum_case("broadcast", "ij,ij->ij"),
      einsum_case("summed_first", "ij,kl->i"),
      einsum_case("spaces", "i j, j -> i"),
      einsum_case("transpose", "ij->ji"),
      einsum_case("sum", "ij->j"),
      einsum_case("trace", "ii"),
      einsum_case("diagonal", "bii->bi"),
      {"prod", [](Operands& of, X) { return prod(of["x"]); }},
      {"prod_dim", [](Operands& of, X) { return prod(of["x"], {1}, true); }},
      {"prod_dim_0", [](Operands& of, X) { return prod(of["x"], {0}); }},
      {"vjp",
       [](Operands& of, X) {
         const std::array<Tensor, 1> y{function(of["a"])};
         return vjp(y, std::array<Tensor, 1>{of["b"]}, std::array<Tensor, 1>{of["a"]})[0];
       }},
      {"jvp",
       [](Operands& of, X) {
         const std::array<Tensor, 1> y{function(of["a"])};
         return jvp(y, std::array<Tensor, 1>{of["a"]}, std::array<Tensor, 1>{of["b"]})[0];
       }},
  };
  for (const char* name :
       {"vectors", "matrix_vector", "vector_matrix", "batch_vector", "vector_batch", "batch_matrix",
        "matrix_batch", "broadcast", "broadcast_both", "of_ones", "two_batches"}) {
    all.push_back(
        {std::string("matmul_") + name, [](Operands& of, X) { return matmul(of["a"], of["b"]); }});
  }
  return all;
}

class TorchProduct : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchProduct, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), kGolden);
}

TEST_P(TorchProduct, GivesThemOnChips) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::expect_op_as_torch(GetParam(), kGolden, &mesh);
}

INSTANTIATE_TEST_SUITE_P(All, TorchProduct, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchProducts, CoverTheGoldenFile) { testing::expect_all_in(kGolden, cases()); }

}  // namespace
}  // namespace weft::products_torch_test
