#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <weft/sharding/mesh.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/unit/spmd/mesh/small_meshes.hpp"

namespace weft::mesh_test {
namespace {

using testing::atom_lists;
using testing::expect_error;
using testing::small_meshes;

TEST(Mesh, HasShapeNamesAndDevices) {
  const Mesh mesh({2, 3}, {"data", "model"});
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.num_axes(), 2);
  EXPECT_EQ(mesh.axis_index("model"), 1);
  EXPECT_EQ(mesh.axis_index("fsdp"), -1);
  EXPECT_TRUE(mesh.has_axis("data"));
  EXPECT_FALSE(mesh.has_axis("Data"));
  EXPECT_EQ(mesh.axis_size("model"), 3);
  EXPECT_EQ(mesh.device_ids(), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(mesh.to_string(), "(2,3) (\"data\",\"model\")");
}

TEST(Mesh, TakesDevicesInAnyOrder) {
  const Mesh mesh({2, 2}, {"x", "y"}, {3, 1, 0, 2});
  EXPECT_EQ(mesh.position_of(3), 0);
  EXPECT_EQ(mesh.position_of(2), 3);
  EXPECT_NE(mesh, Mesh({2, 2}, {"x", "y"}));
}

TEST(Mesh, RejectsRepeatedAxisName) {
  expect_error(Errc::invalid_argument, {"\"data\"", "repeated", "(\"data\",\"data\")"}, [] {
    Mesh({2, 2}, {"data", "data"});
  });
}

TEST(Mesh, RejectsEmptyAxisName) {
  expect_error(Errc::invalid_argument, {"axis_names[1]", "empty"}, [] { Mesh({2, 2}, {"x", ""}); });
}

TEST(Mesh, RejectsAxisNameThatCannotBeQuoted) {
  for (const char* name : {"a\"b", "a\\b", "a\nb"}) {
    expect_error(Errc::invalid_argument, {"axis name", "quote"}, [&] { Mesh({2}, {name}); });
  }
}

TEST(Mesh, RejectsSizeBelowOne) {
  for (const std::int64_t size : {0, -4}) {
    expect_error(Errc::invalid_argument, {"axis \"y\"", std::to_string(size), "at least 1"}, [&] {
      Mesh({2, size}, {"x", "y"});
    });
  }
}

TEST(Mesh, RejectsOtherNumberOfNames) {
  expect_error(Errc::mesh_mismatch, {"(2,2)", "2 axes", "\"data\"", "1"}, [] {
    Mesh({2, 2}, {"data"});
  });
}

TEST(Mesh, RejectsOtherNumberOfDevices) {
  expect_error(Errc::mesh_mismatch, {"3 entries", "4 chips"}, [] {
    Mesh({2, 2}, {"x", "y"}, {0, 1, 2});
  });
}

TEST(Mesh, RejectsRepeatedDevice) {
  expect_error(Errc::invalid_argument, {"device id 1", "repeated"}, [] {
    Mesh({3}, {"x"}, {0, 1, 1});
  });
}

TEST(Mesh, RejectsDeviceOutsideRange) {
  for (const int id : {-1, 3}) {
    expect_error(Errc::invalid_argument, {"device id", std::to_string(id), "0..2"}, [&] {
      Mesh({3}, {"x"}, {0, 1, id});
    });
  }
}

TEST(Mesh, RejectsMoreThanFifteenAtomsWithTheCount) {
  expect_error(Errc::unavailable, {"16 prime factors", "15"}, [] { Mesh({1 << 16}, {"x"}); });
  EXPECT_EQ(Mesh({1 << 15}, {"x"}).num_atoms(), 15);
}

TEST(Mesh, RejectsMoreChipsThanTheLimit) {
  const std::int64_t large = std::int64_t{1} << 40;
  expect_error(Errc::unavailable, {"1048576 chips"}, [&] { Mesh({large, large}, {"x", "y"}); });
}

TEST(Mesh, NamesItsAxesWhereOneIsUnknown) {
  const Mesh mesh({2, 2}, {"data", "model"});
  expect_error(Errc::not_found, {"\"fsdp\"", "\"data\",\"model\""},
               [&] { static_cast<void>(mesh.axis_size("fsdp")); });
  expect_error(Errc::not_found, {"device 4", "0..3"},
               [&] { static_cast<void>(mesh.position_of(4)); });
}

TEST(Mesh, SplitsAxesIntoPrimesLargestMajor) {
  const Mesh mesh({12, 1, 2}, {"x", "one", "y"});
  ASSERT_EQ(mesh.num_atoms(), 4);
  EXPECT_EQ(mesh.axis_atoms(0), (AtomList{1, 2, 3}));
  EXPECT_TRUE(mesh.axis_atoms(1).empty());
  EXPECT_EQ(mesh.axis_atoms(2), (AtomList{4}));
  EXPECT_EQ(mesh.atom_size(1), 3);
  EXPECT_EQ(mesh.atom_size(2), 2);
  EXPECT_EQ(mesh.atom_size(3), 2);
  EXPECT_EQ(mesh.atom_axis(4), 2);
  EXPECT_EQ(mesh.count(AtomList{1, 4}), 6);
  EXPECT_EQ(mesh.count(AtomMask{0b110}), 6);
  EXPECT_EQ(mesh.list(0b11010), (AtomList{1, 3, 4}));
}

TEST(Mesh, CoordinatesAreRowMajor) {
  for (const Mesh& mesh : small_meshes()) {
    int position = 0;
    std::vector<std::int64_t> expected(mesh.shape().size(), 0);
    for (; position < mesh.size(); ++position) {
      EXPECT_EQ(mesh.coords(position), expected) << mesh.to_string() << " at " << position;
      for (std::size_t axis = expected.size(); axis-- > 0;) {
        if (++expected[axis] < mesh.shape()[axis]) break;
        expected[axis] = 0;
      }
    }
  }
}

TEST(Mesh, AtomsOfAnAxisMakeItsCoordinate) {
  for (const Mesh& mesh : small_meshes()) {
    for (int position = 0; position < mesh.size(); ++position) {
      for (int axis = 0; axis < mesh.num_axes(); ++axis) {
        EXPECT_EQ(mesh.index_in(position, mesh.axis_atoms(axis)),
                  mesh.coords(position)[static_cast<std::size_t>(axis)])
            << mesh.to_string();
      }
    }
  }
}

TEST(Mesh, IndexIsMixedRadixOfCoordinates) {
  for (const Mesh& mesh : small_meshes()) {
    for (const AtomList atoms : atom_lists(mesh)) {
      for (int position = 0; position < mesh.size(); ++position) {
        std::int64_t index = 0;
        for (int i = 0; i < atoms.size(); ++i) {
          std::int64_t minor = 1;
          for (int j = i + 1; j < atoms.size(); ++j) minor *= mesh.atom_size(atoms[j]);
          index += mesh.coord(position, atoms[i]) * minor;
        }
        EXPECT_EQ(mesh.index_in(position, atoms), index) << mesh.to_string();
      }
    }
  }
}

TEST(Mesh, GroupsAreWhatBruteForceFinds) {
  for (const Mesh& mesh : small_meshes()) {
    for (const AtomList atoms : atom_lists(mesh)) {
      for (int position = 0; position < mesh.size(); ++position) {
        std::map<std::int64_t, int> expected;  // the keys are indices in the group
        for (int other = 0; other < mesh.size(); ++other) {
          bool agrees = true;
          for (int atom = 1; atom <= mesh.num_atoms(); ++atom) {
            const auto a = static_cast<Atom>(atom);
            agrees &= atoms.contains(a) || mesh.coord(other, a) == mesh.coord(position, a);
          }
          if (agrees) expected[mesh.index_in(other, atoms)] = other;
        }
        const std::vector<int> group = mesh.group(position, atoms);
        ASSERT_EQ(group.size(), expected.size()) << mesh.to_string();
        std::size_t i = 0;
        for (const auto& [index, member] : expected) EXPECT_EQ(group[i++], member);
      }
    }
  }
}

TEST(Mesh, PrintsItsGrid) {
  EXPECT_EQ(Mesh({2, 2}, {"data", "model"}, {3, 1, 0, 2}).grid(),
            "columns: model\n"
            "data=0 | 3 1\n"
            "data=1 | 0 2\n");
  EXPECT_EQ(Mesh({3}, {"data"}).grid(), "columns: data\n| 0 1 2\n");
  EXPECT_EQ(Mesh({2, 1, 6}, {"a", "b", "c"}).grid(),
            "columns: c\n"
            "a=0 b=0 |  0  1  2  3  4  5\n"
            "a=1 b=0 |  6  7  8  9 10 11\n");
  EXPECT_EQ(Mesh({}, {}).grid(), "0\n");
}

}  // namespace
}  // namespace weft::mesh_test
