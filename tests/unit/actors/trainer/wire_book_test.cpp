#include "actors/trainer/wire_book.hpp"

#include <gtest/gtest.h>

namespace weft::wire_book_test {
namespace {

using Addresses = std::vector<std::string>;

TEST(WireBook, IsCompleteWhenAllChipsHaveAnAddress) {
  WireBook book(4, 2, "");
  EXPECT_FALSE(book.add({.generation = 2, .first_chip = 2, .addresses = {"c", "d"}}));
  const auto all = book.add({.generation = 2, .first_chip = 0, .addresses = {"a", "b"}});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->generation, 2U);
  EXPECT_EQ(all->addresses, (Addresses{"a", "b", "c", "d"}));
}

TEST(WireBook, IgnoresWhatDoesNotBelongToIt) {
  WireBook book(2, 2, "");
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

TEST(WireBook, TellsTheAddressByWhichHost0IsReached) {
  WireBook book(3, 1, "10.0.0.1");
  book.add({.generation = 1, .first_chip = 0, .addresses = {"0.0.0.0:4711"}});
  book.add({.generation = 1, .first_chip = 1, .addresses = {"[::]:4712"}});
  const auto all = book.add({.generation = 1, .first_chip = 2, .addresses = {"10.0.0.2:1"}});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->addresses,
            (std::vector<std::string>{"10.0.0.1:4711", "10.0.0.1:4712", "10.0.0.2:1"}));
  WireBook v6(1, 1, "fd00::1");
  const auto one = v6.add({.generation = 1, .first_chip = 0, .addresses = {"[::]:4711"}});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->addresses.front(), "[fd00::1]:4711");
}

}  // namespace
}  // namespace weft::wire_book_test
