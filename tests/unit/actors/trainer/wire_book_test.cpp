#include "actors/trainer/wire_book.hpp"

#include <gtest/gtest.h>

namespace weft::wire_book_test {
namespace {

using Addresses = std::vector<std::string>;

TEST(WireBook, IsCompleteWhenAllChipsHaveAnAddress) {
  WireBook book(4, 2);
  EXPECT_FALSE(book.add({.generation = 2, .first_chip = 2, .addresses = {"c", "d"}}));
  const auto all = book.add({.generation = 2, .first_chip = 0, .addresses = {"a", "b"}});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->generation, 2U);
  EXPECT_EQ(all->addresses, (Addresses{"a", "b", "c", "d"}));
}

TEST(WireBook, IgnoresWhatDoesNotBelongToIt) {
  WireBook book(2, 2);
  EXPECT_FALSE(book.add({.generation = 1, .first_chip = 0, .addresses = {"a", "b"}}));
  EXPECT_FALSE(book.add({.generation = 2, .first_chip = -1, .addresses = {"a"}}));
  EXPECT_FALSE(book.add({.generation = 2, .first_chip = 1, .addresses = {"b", "c"}}));
  EXPECT_FALSE(book.add({.generation = 2, .first_chip = 0, .addresses = {}}));
  EXPECT_FALSE(book.add({.generation = 2, .first_chip = 0, .addresses = {"a"}}));
  EXPECT_FALSE(book.add({.generation = 2, .first_chip = 0, .addresses = {"x"}})) << "known";
  const auto all = book.add({.generation = 2, .first_chip = 1, .addresses = {"b"}});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->addresses, (Addresses{"a", "b"}));
}

}  // namespace
}  // namespace weft::wire_book_test
