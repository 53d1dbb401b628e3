#include <gtest/gtest.h>

#include <weft/sharding/atom.hpp>

namespace weft::atom_test {
namespace {

TEST(AtomList, KeepsOrderAndSize) {
  const AtomList list{3, 1, 15};
  EXPECT_EQ(list.size(), 3);
  EXPECT_EQ(list[0], 3);
  EXPECT_EQ(list[1], 1);
  EXPECT_EQ(list.back(), 15);
  EXPECT_EQ(list.bits(), 0xf13U);
  EXPECT_NE(list, (AtomList{1, 3, 15}));
  EXPECT_EQ(AtomList::from_bits(0xf13), list);
}

TEST(AtomList, MasksAndContains) {
  const AtomList list{3, 1};
  EXPECT_EQ(list.mask(), 0b1010);
  EXPECT_TRUE(list.contains(3));
  EXPECT_FALSE(list.contains(2));
  EXPECT_EQ(AtomList{}.mask(), 0);
}

TEST(AtomList, CutsAndJoins) {
  const AtomList list{3, 1, 2};
  EXPECT_EQ(list.prefix(0), AtomList{});
  EXPECT_EQ(list.prefix(2), (AtomList{3, 1}));
  EXPECT_EQ(list.prefix(16), list);
  EXPECT_EQ(list.suffix_from(1), (AtomList{1, 2}));
  EXPECT_EQ(list.suffix_from(16), AtomList{});
  EXPECT_TRUE((AtomList{3, 1}).is_prefix_of(list));
  EXPECT_TRUE(AtomList{}.is_prefix_of(list));
  EXPECT_FALSE((AtomList{1}).is_prefix_of(list));
  AtomList joined = list.prefix(1);
  joined.append(list.suffix_from(1));
  EXPECT_EQ(joined, list);
}

TEST(AtomList, HoldsAllFifteenAtoms) {
  AtomList list;
  for (int atom = 1; atom <= kAtomCountMax; ++atom) list.push_back(static_cast<Atom>(atom));
  EXPECT_EQ(list.size(), kAtomCountMax);
  EXPECT_EQ(list.mask(), 0xfffe);
  EXPECT_EQ(list.back(), kAtomCountMax);
}

}  // namespace
}  // namespace weft::atom_test
