#include <weft/tensor/creation.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::creation_test {
namespace {

using testing::expect_error;
using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

class Creation : public testing::TensorTest {};

TEST_F(Creation, OfOneValue) {
  EXPECT_EQ(zeros({2, 2}).to_vector(), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(ones({3}, DType::i32).to_vector<std::int32_t>(), (Integers{1, 1, 1}));
  const Tensor x = to_device(Integers{5, 6}, {1, 2});
  for (const Tensor& like : {zeros_like(x), ones_like(x), full_like(x, 7)}) {
    EXPECT_EQ(like.type(), x.type());
  }
  EXPECT_EQ(full_like(x, 7).to_vector<std::int32_t>(), (Integers{7, 7}));
  EXPECT_EQ(zeros({0, 3}).num_elements(), 0);
}

TEST_F(Creation, ARange) {
  EXPECT_EQ(arange(4).to_vector<std::int32_t>(), (Integers{0, 1, 2, 3}));
  EXPECT_EQ(arange(2, 9, 3).to_vector<std::int32_t>(), (Integers{2, 5, 8}));
  EXPECT_EQ(arange(3, -4, -2).to_vector<std::int32_t>(), (Integers{3, 1, -1, -3}));
  EXPECT_EQ(arange(1, 2, 0.25, DType::f32).to_vector(), (Floats{1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(arange(3, DType::f32).to_vector(), (Floats{0, 1, 2}));
  EXPECT_EQ(arange(0).num_elements(), 0);
  // Like torch.arange(0, 1, 0.1), arange computes numbers in f64 and rounds them to f32.
  Floats tenths;
  for (int i = 0; i < 10; ++i) tenths.push_back(static_cast<float>(i * 0.1));
  EXPECT_EQ(arange(0, 1, 0.1, DType::f32).to_vector(), tenths);
}

TEST_F(Creation, NumbersAtEqualDistances) {
  EXPECT_EQ(linspace(0, 1, 5).to_vector(), (Floats{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linspace(1, -1, 3).to_vector(), (Floats{1, 0, -1}));
  EXPECT_EQ(linspace(2, 3, 1).to_vector(), (Floats{2}));
  EXPECT_EQ(linspace(2, 3, 0).num_elements(), 0);
  const Floats thirds = linspace(0.1, 0.7, 10).to_vector();
  EXPECT_EQ(thirds.front(), 0.1F);
  EXPECT_EQ(thirds.back(), 0.7F);
}

TEST_F(Creation, AnIdentity) {
  EXPECT_EQ(eye(2).to_vector(), (Floats{1, 0, 0, 1}));
  EXPECT_EQ(eye(2, 3, DType::i32).to_vector<std::int32_t>(), (Integers{1, 0, 0, 0, 1, 0}));
}

TEST_F(Creation, RefusesWhatLeadsNowhere) {
  const auto refused = [](std::initializer_list<std::string_view> words, auto make) {
    expect_error(Errc::invalid_argument, words, make);
  };
  refused({"arange", "from 0 to 5 by 0", "creation_test.cpp:"}, [] { (void)arange(0, 5, 0); });
  refused({"from 0 to 5 by -1", "a step above 0"}, [] { (void)arange(0, 5, -1); });
  refused({"from 0 by 0.5 in i32", "floating dtype"}, [] { (void)arange(0, 5, 0.5); });
  refused({"finite"}, [] { (void)arange(0, 1 / 0.0); });
  refused({"at most"}, [] { (void)arange(1e12); });
  refused({"linspace", "steps = -1"}, [] { (void)linspace(0, 1, -1); });
  refused({"dtype = i32", "arange()"}, [] { (void)linspace(0, 1, 3, DType::i32); });
  refused({"eye", "-2 rows"}, [] { (void)eye(-2); });
}

}  // namespace
}  // namespace weft::creation_test
