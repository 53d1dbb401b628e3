/// Tests collectives that continue while their chips do something else. Wires connect the hosts of
/// the teams: threads over TLS, and processes over TLS and over UCX.

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <csignal>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/conformance/chip_team.hpp"
#include "transport/network/overlapped_tier.hpp"

namespace weft::testing::overlap_test {
namespace {

constexpr std::size_t kCapacity = std::size_t{8} << 20;
constexpr std::chrono::seconds kLong{60};
constexpr int kCount = 4;  ///< the number of collectives in progress at once
constexpr std::array<std::string_view, 8> kNames{"sum 0", "sum 1", "sum 2", "sum 3",
                                                 "sum 4", "sum 5", "sum 6", "sum 7"};

Communicator overlapping(const TeamChip& chip, const Mesh& mesh, NetworkTier::OnLoss on_loss = {}) {
  const int position = mesh.position_of(chip.id);
  const BoardWriter row = chip.board.device(chip.id);
  const WaitPolicy policy = WaitPolicy::for_threads(mesh.size(), kLong);
  auto network = std::make_unique<NetworkTier>(chip.memory, mesh, position, *chip.wires, row,
                                               policy, std::move(on_loss));
  return {chip.memory, mesh,   position,
          row,         policy, std::make_unique<OverlappedTier>(std::move(network), row)};
}

/// Returns the sum over the mesh's first axis, which is between hosts, or its second.
CollectiveCall sum_at(const Mesh& mesh, int axis, int slot, std::int64_t count) {
  const std::uint64_t offset = kArenaTempOffset + static_cast<std::uint64_t>(slot) * (1U << 20);
  return {.kind = CollectiveKind::all_reduce,
          .atoms = mesh.axis_atoms(axis),
          .source = offset,
          .destination = offset + (1U << 19),
          .count = count,
          .name = kNames.at(static_cast<std::size_t>(slot))};
}

float* floats_at(const TeamChip& chip, std::uint64_t offset) {
  return reinterpret_cast<float*>(chip.arena() + offset);
}

void fill(const TeamChip& chip, const CollectiveCall& call, float value) {
  std::fill_n(floats_at(chip, call.source), call.count, value);
  std::fill_n(floats_at(chip, call.destination), call.count, -1.0F);
}

void require_sum(const TeamChip& chip, const CollectiveCall& call, float expected) {
  for (std::int64_t i = 0; i < call.count; ++i) {
    const float found = floats_at(chip, call.destination)[i];
    if (found == expected) continue;
    throw std::runtime_error(fmt::format("chip {}: {} at {} of '{}', expected {}", chip.id, found,
                                         i, call.name, expected));
  }
}

/// Throws unless `body` throws an error with this code and these words.
template <typename Body>
void require_error(Errc code, const std::vector<std::string>& words, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    for (const std::string& word : words) {
      if (message.find(word) != std::string_view::npos) continue;
      throw std::runtime_error(fmt::format("'{}' isn't in: {}", word, message));
    }
    if (error.code() != code) throw;
    return;
  }
  throw std::runtime_error(fmt::format("expected an error {}", to_string(code)));
}

/// Begins sums of all sizes between hosts, runs other sums meanwhile, and ends the first ones by
/// waiting or polling. All choices are random, but the same on all chips.
void sum_in_random_order(const TeamChip& chip, const Mesh& mesh) {
  std::vector<PreparedCall> calls;  // outlive the communicator, which refers to them
  Communicator communicator = overlapping(chip, mesh);
  std::vector<CollectiveCall> sums;
  for (int slot = 0; slot < kCount; ++slot) {
    sums.push_back(sum_at(mesh, 0, slot, std::int64_t{1} << (1 + 5 * slot)));
    calls.push_back(communicator.prepare(sums.back()));
  }
  const CollectiveCall beside[] = {sum_at(mesh, 0, kCount, 1000),
                                   sum_at(mesh, 1, kCount + 1, 1000)};
  for (const CollectiveCall& call : beside) calls.push_back(communicator.prepare(call));
  const float of_hosts = static_cast<float>(2 * (chip.id % 2) + 2);  // chips 0 and 2, or 1 and 3
  const float of_host = static_cast<float>(4 * (chip.id / 2) + 1);
  std::minstd_rand random(7);
  for (int round = 0; round < 50; ++round) {
    const auto step = static_cast<float>(round);
    for (int slot = 0; slot < kCount; ++slot) {
      fill(chip, sums[static_cast<std::size_t>(slot)], static_cast<float>(chip.id + slot) + step);
      if (!communicator.begin(calls[static_cast<std::size_t>(slot)])) {
        throw std::runtime_error("no sum runs beside the chip");
      }
      if (random() % 2 == 0) continue;
      const std::size_t axis = random() % 2;
      fill(chip, beside[axis], static_cast<float>(chip.id));
      communicator.run(calls[kCount + axis]);
      require_sum(chip, beside[axis], axis == 0 ? of_hosts : of_host);
    }
    const bool waits = random() % 2 == 0;
    for (int slot = 0; slot < kCount; ++slot) {
      while (!communicator.end_begun(waits)) {
      }
      require_sum(chip, sums[static_cast<std::size_t>(slot)],
                  of_hosts + 2 * (static_cast<float>(slot) + step));
    }
  }
  if (!communicator.end_begun(true)) throw std::runtime_error("something was left");
}

template <typename Team>
class Overlap : public TeamTest<Team> {
 protected:
  std::vector<std::string> run(const ChipBody& body) { return Team::run(mesh, kCapacity, body); }
  void expect_all_succeed(const ChipBody& body) {
    for (const std::string& failure : run(body)) EXPECT_EQ(failure, "");
  }

  /// Two hosts of two chips.
  const Mesh mesh = Team::mesh_of(Mesh({2, 2}, {"data", "model"}));
};

#ifdef WEFT_THREAD_SANITIZER
using HostTeams = ::testing::Types<HostTeam>;
#else
using HostTeams = ::testing::Types<HostTeam, WireTeam<WireKind::tls>, WireTeam<WireKind::ucx> >;
#endif
TYPED_TEST_SUITE(Overlap, HostTeams);

TYPED_TEST(Overlap, SeveralGoOnAtOnceAndBesideOthers) {
  this->expect_all_succeed([this](const TeamChip& chip) { sum_in_random_order(chip, this->mesh); });
}

TYPED_TEST(Overlap, EveryChipLearnsAtTheEndWhoBeganSomethingElse) {
  this->expect_all_succeed([this](const TeamChip& chip) {
    std::vector<PreparedCall> calls;
    Communicator communicator = overlapping(chip, this->mesh);
    calls.push_back(communicator.prepare(sum_at(this->mesh, 0, 0, 100'000)));
    calls.push_back(communicator.prepare(sum_at(this->mesh, 0, 1, chip.id < 2 ? 10 : 20)));
    for (const PreparedCall& call : calls) communicator.begin(call);
    communicator.end_begun(true);
    const int twin = (chip.id + 2) % 4;
    require_error(Errc::program_divergence,
                  {fmt::format("chip {} called all_reduce #2 'sum 1'", chip.id),
                   fmt::format("chip {} called all_reduce #2 'sum 1'", twin)},
                  [&] { communicator.end_begun(true); });
    require_error(Errc::program_divergence, {"#2"}, [&] { communicator.run(calls[0]); });
  });
}

/// Chip 3 never begins. Chip 1 waits for it, and the others wait for chip 1.
TYPED_TEST(Overlap, AnAbortEndsWhatGoesOn) {
  this->expect_all_succeed([this](const TeamChip& chip) {
    std::vector<PreparedCall> calls;
    Communicator communicator = overlapping(chip, this->mesh);
    const PreparedCall& sum =
        calls.emplace_back(communicator.prepare(sum_at(this->mesh, 0, 0, 1000)));
    if (chip.id == 3) {
      while (chip.board.read(2 + 1).waiting_for != 3) ::sched_yield();
      return chip.abort("chip 3 has had enough");
    }
    communicator.begin(sum);
    if (chip.id != 1) return static_cast<void>(communicator.end_begun(true));
    require_error(Errc::peer_lost,
                  {"chip 3 has had enough", "chip 1 was in all_reduce #1 'sum 0'", "chip 3"},
                  [&] { communicator.end_begun(true); });
  });
}

/// Chip 3's process dies after it has begun a sum. Chip 1 reports the lost wire while it isn't
/// waiting.
TYPED_TEST(Overlap, AKillEndsWhatGoesOn) {
  if (std::is_same_v<TypeParam, HostTeam>) GTEST_SKIP() << "threads can't be killed";
  const std::vector<std::string> failures = this->run([this](const TeamChip& chip) {
    if (chip.id % 2 == 0) return;
    std::atomic<bool> has_lost = false;
    std::vector<PreparedCall> calls;
    Communicator communicator = overlapping(chip, this->mesh, [&](const WireLoss& loss) {
      if (loss.peer != 3) return;
      has_lost = true;
      chip.abort("chip 3 was killed");
    });
    const PreparedCall& sum =
        calls.emplace_back(communicator.prepare(sum_at(this->mesh, 0, 0, 1000)));
    communicator.begin(sum);
    communicator.end_begun(true);
    communicator.begin(sum);
    if (chip.id == 3) ::kill(::getpid(), SIGKILL);
    require_error(Errc::peer_lost, {"chip 3 was killed", "chip 1 was in all_reduce #"}, [&] {
      // This begin() may throw the error already, unless chip 3 had sent all of the sum before it
      // died.
      communicator.begin(sum);
      while (!has_lost) ::sched_yield();
      communicator.end_begun(true);
      communicator.end_begun(true);
    });
  });
  EXPECT_EQ(failures[1], "");
  EXPECT_NE(failures[3], "");
}

TYPED_TEST(Overlap, CollectivesOfAHostDontGoOn) {
  this->expect_all_succeed([this](const TeamChip& chip) {
    std::vector<PreparedCall> calls;
    Communicator communicator = overlapping(chip, this->mesh);
    const CollectiveCall call = sum_at(this->mesh, 1, 0, 100);
    const PreparedCall& sum = calls.emplace_back(communicator.prepare(call));
    if (communicator.begin(sum)) throw std::runtime_error("it runs beside the chip");
    fill(chip, call, 1);
    communicator.run(sum);
    require_sum(chip, call, 2);
  });
}

}  // namespace
}  // namespace weft::testing::overlap_test
