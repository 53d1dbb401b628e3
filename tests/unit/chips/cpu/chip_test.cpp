#include <weft/sharding/chip.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "chips/cpu/executor.hpp"
#include "chips/engine/arena_chip_collectives.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::chip_test {
namespace {

using testing::EngineMesh;
using testing::expect_error;

/// Runs `body` on every chip at once, each in its own thread.
void on_each_chip(EngineMesh& chips, const std::function<void(Chip&)>& body) {
  std::vector<std::thread> threads;
  for (int position = 0; position < chips.mesh().size(); ++position) {
    threads.emplace_back([&, position] { chips.engine(position).call(0, 0, body); });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Returns an initial element of a chip; no two elements, on any chips, are equal.
std::int64_t element(int position, std::int64_t i) { return position * 1'000'003 + i; }

/// The memory of one chip in a test: `size` elements in the chip's arena, or in a vector.
class Memory {
 public:
  Memory(EngineMesh& chips, const Chip& chip, bool in_arena, std::uint64_t offset,
         std::int64_t size)
      : own_(static_cast<std::size_t>(in_arena ? 0 : size)) {
    const int arena = chips.mesh().device_at(chip.position());
    const std::uint64_t begin = chips.memory().buffers_offset() + offset;
    const auto bytes = static_cast<std::size_t>(size) * sizeof(std::int64_t);
    if (in_arena) chips.memory().reserve(arena, begin, bytes);
    auto* data = in_arena ? reinterpret_cast<std::int64_t*>(chips.memory().arena(arena) + begin)
                          : own_.data();
    elements = {data, static_cast<std::size_t>(size)};
    for (std::int64_t i = 0; i < size; ++i) {
      elements[static_cast<std::size_t>(i)] = element(chip.position(), i);
    }
  }
  std::span<std::int64_t> elements;

 private:
  std::vector<std::int64_t> own_;
};

struct Case {
  bool in_arena;
  std::int64_t size;  ///< the number of elements in a part
};

class ChipCollectives : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint64_t kSecond = std::uint64_t{1} << 24;

  Memory first(const Chip& chip, std::int64_t size) {
    return {chips_, chip, GetParam().in_arena, 0, size};
  }
  Memory second(const Chip& chip, std::int64_t size) {
    return {chips_, chip, GetParam().in_arena, kSecond, size};
  }
  /// Returns the positions of the chips in this chip's group along "model".
  std::vector<int> row(const Chip& chip) const {
    return chips_.mesh().group(chip.position(), chips_.mesh().axis_atoms(1));
  }

  EngineMesh chips_{Mesh({2, 3}, {"data", "model"}, {5, 0, 2, 1, 4, 3})};
};

TEST_P(ChipCollectives, AllReduceSumsOverAllChips) {
  const std::int64_t size = GetParam().size;
  on_each_chip(chips_, [&](Chip& chip) {
    const Memory values = first(chip, size);
    chip.all_reduce(values.elements);
    for (std::int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(values.elements[static_cast<std::size_t>(i)], 15 * 1'000'003 + 6 * i);
    }
  });
}

TEST_P(ChipCollectives, AllReduceTakesTheMaxAlongAnAxis) {
  const std::int64_t size = GetParam().size;
  on_each_chip(chips_, [&](Chip& chip) {
    const Memory values = first(chip, size);
    chip.all_reduce(values.elements, {"model"}, ReduceKind::max);
    for (std::int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(values.elements[static_cast<std::size_t>(i)], element(row(chip).back(), i));
    }
  });
}

TEST_P(ChipCollectives, AllGatherPutsThePartsInGroupOrder) {
  const std::int64_t size = GetParam().size;
  on_each_chip(chips_, [&](Chip& chip) {
    const Memory part = first(chip, size);
    const Memory whole = second(chip, 3 * size);
    chip.all_gather(part.elements, whole.elements, {"model"});
    for (std::int64_t i = 0; i < 3 * size; ++i) {
      ASSERT_EQ(whole.elements[static_cast<std::size_t>(i)],
                element(row(chip)[static_cast<std::size_t>(i / size)], i % size));
    }
  });
}

TEST_P(ChipCollectives, ReduceScatterLeavesEachChipItsPart) {
  const std::int64_t size = GetParam().size;
  on_each_chip(chips_, [&](Chip& chip) {
    const Memory whole = first(chip, 3 * size);
    const Memory part = second(chip, size);
    chip.reduce_scatter(whole.elements, part.elements, {"model"});
    for (std::int64_t i = 0; i < size; ++i) {
      std::int64_t sum = 0;
      for (const int q : row(chip)) sum += element(q, chip.group_index({"model"}) * size + i);
      ASSERT_EQ(part.elements[static_cast<std::size_t>(i)], sum);
    }
  });
}

TEST_P(ChipCollectives, AllToAllTransposesTheParts) {
  const std::int64_t size = GetParam().size;
  on_each_chip(chips_, [&](Chip& chip) {
    const Memory parts = first(chip, 3 * size);
    const Memory received = second(chip, 3 * size);
    chip.all_to_all(parts.elements, received.elements, {"model"});
    for (std::int64_t i = 0; i < 3 * size; ++i) {
      ASSERT_EQ(received.elements[static_cast<std::size_t>(i)],
                element(row(chip)[static_cast<std::size_t>(i / size)],
                        chip.group_index({"model"}) * size + i % size));
    }
  });
}

TEST_P(ChipCollectives, BroadcastSendsTheRootsValues) {
  const std::int64_t size = GetParam().size;
  on_each_chip(chips_, [&](Chip& chip) {
    const Memory values = first(chip, size);
    chip.broadcast(values.elements, 4);
    for (std::int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(values.elements[static_cast<std::size_t>(i)], element(4, i));
    }
  });
}

TEST_P(ChipCollectives, PermuteFetchesFromTheSources) {
  const std::int64_t size = GetParam().size;
  const std::array<int, 6> sources = {1, 2, 3, 4, 5, 0};
  on_each_chip(chips_, [&](Chip& chip) {
    const Memory values = first(chip, size);
    const Memory received = second(chip, size);
    chip.permute(values.elements, received.elements, sources);
    for (std::int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(received.elements[static_cast<std::size_t>(i)],
                element((chip.position() + 1) % 6, i));
    }
  });
}

/// The sizes are 0, 1, a few elements, and more elements than one copy handles.
INSTANTIATE_TEST_SUITE_P(All, ChipCollectives,
                         ::testing::Values(Case{true, 0}, Case{true, 1}, Case{true, 1000},
                                           Case{true, 100'003}, Case{false, 0}, Case{false, 1},
                                           Case{false, 1000}, Case{false, 200'003}),
                         [](const auto& test) {
                           return fmt::format("{}Of{}", test.param.in_arena ? "Arrays" : "Vectors",
                                              test.param.size);
                         });

TEST(Chip, KnowsItsGroups) {
  EngineMesh chips(Mesh({2, 3}, {"data", "model"}));
  on_each_chip(chips, [](Chip& chip) {
    EXPECT_EQ(chip.group_size(), 6);
    EXPECT_EQ(chip.group_index(), chip.position());
    EXPECT_EQ(chip.group_size({"data"}), 2);
    EXPECT_EQ(chip.group_index({"data"}), chip.position() / 3);
    EXPECT_EQ(chip.group_index({"model"}), chip.position() % 3);
    EXPECT_EQ(chip.group_index({"model", "data"}), chip.position() % 3 * 2 + chip.position() / 3);
    EXPECT_EQ(chip.local_index(), chip.position());
  });
}

TEST(Chip, ReducesBoolsAndBf16) {
  EngineMesh chips(Mesh({2}, {"data"}));
  on_each_chip(chips, [](Chip& chip) {
    std::array<bool, 2> any = {chip.position() == 1, false};
    chip.all_reduce(any, {}, ReduceKind::max);
    EXPECT_EQ(any, (std::array<bool, 2>{true, false}));
    std::array<std::uint16_t, 3> ones = {0x3f80, 0x3f80, 0x3f80};
    chip.all_reduce({DType::bf16, reinterpret_cast<std::byte*>(ones.data()), 3});
    EXPECT_EQ(ones, (std::array<std::uint16_t, 3>{0x4000, 0x4000, 0x4000}));
  });
}

TEST(Chip, TakesScalarsAndNamesThatAreMadeAtRunTime) {
  EngineMesh chips(Mesh({2, 2}, {"data", "model"}));
  on_each_chip(chips, [](Chip& chip) {
    double loss = chip.position();
    chip.all_reduce(loss);
    EXPECT_EQ(loss, 6);
    const std::vector<std::string> axes = {std::string("da") + "ta"};
    std::int64_t one = 1;
    chip.all_reduce(one, axes);
    EXPECT_EQ(one, 2);
  });
}

TEST(Chip, TellsTheCallsOfDifferentBodiesApart) {
  EngineMesh chips(Mesh({2}, {"data"}));
  const std::function<void(Chip&)> body = [](Chip& chip) {
    float one = 1;
    expect_error(Errc::program_divergence, {"all_reduce"}, [&] { chip.all_reduce(one); });
  };
  std::thread other([&] { chips.engine(1).call(0, 1, body); });
  chips.engine(0).call(0, 0, body);
  other.join();
}

/// Each call is made in pieces. All pieces of the smaller call equal pieces of the larger call, so
/// the pieces don't show the difference.
TEST(Chip, FindsSizesThatDifferThoughTheirPiecesAgree) {
  EngineMesh chips(Mesh({2}, {"data"}));
  on_each_chip(chips, [](Chip& chip) {
    std::vector<float> values((kStagingBytes / sizeof(float)) << (1 + chip.position()));
    expect_error(Errc::program_divergence, {"'chip_test.cpp:", ", of 262144'", ", of 524288'"},
                 [&] { chip.all_reduce(values); });
  });
}

TEST(Chip, WorksOnPartsOfArrays) {
  EngineMesh chips(Mesh({2}, {"data"}));
  on_each_chip(chips, [&](Chip& chip) {
    const Memory values(chips, chip, true, 0, 20);
    for (const std::size_t begin : {0U, 3U, 8U}) {  // offset 3 isn't aligned
      chip.all_reduce(values.elements.subspan(begin, 2));
    }
    for (const std::size_t i : {0U, 3U, 9U}) {
      EXPECT_EQ(values.elements[i], 1'000'003 + 2 * static_cast<std::int64_t>(i));
    }
    EXPECT_EQ(values.elements[5], element(chip.position(), 5));
  });
}

TEST(Chip, RefusesWhatDoesntFit) {
  EngineMesh chips(Mesh({1}, {"data"}));
  chips.engine(0).call(0, 0, [](Chip& chip) {
    std::vector<float> four(4);
    std::vector<float> five(5);
    std::vector<std::int32_t> ints(4);
    expect_error(Errc::invalid_argument, {"all_gather at chip_test.cpp:", "4", "room for 5 of f32"},
                 [&] { chip.all_gather(four, five); });
    expect_error(Errc::invalid_argument, {"room for 4 of i32"},
                 [&] { chip.all_gather(four, ints); });
    expect_error(Errc::not_found, {"batch", "data"}, [&] { chip.barrier({"batch"}); });
    expect_error(Errc::invalid_argument, {"\"data\" is given twice"}, [&] {
      chip.barrier({"data", "data"});
    });
    expect_error(Errc::invalid_argument, {"chip_test.cpp:", "from = [1]"},
                 [&] { chip.broadcast(four, 1); });
    std::array<bool, 1> flag = {true};
    expect_error(Errc::invalid_argument, {"pred can't be added"}, [&] { chip.all_reduce(flag); });
    expect_error(Errc::invalid_argument, {"overlap"},
                 [&] { chip.permute(four, four, std::array{0}); });
    expect_error(Errc::invalid_argument, {"size = -1"}, [&] {
      chip.all_reduce({DType::f32, nullptr, -1});
    });
    expect_error(Errc::invalid_argument, {"size = 3, data ="}, [&] {
      chip.all_reduce({DType::f32, nullptr, 3});
    });
    chip.all_reduce(four);  // refused calls leave the chip usable
  });
  EngineMesh two(Mesh({2}, {"data"}));
  on_each_chip(two, [](Chip& chip) {
    std::vector<float> three(3);
    std::vector<float> part(1);
    expect_error(Errc::invalid_argument, {"reduce_scatter at", "3 elements", "2 chips"},
                 [&] { chip.reduce_scatter(three, part); });
  });
}

}  // namespace
}  // namespace weft::chip_test
