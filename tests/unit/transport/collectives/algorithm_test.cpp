#include "transport/collectives/algorithm.hpp"

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "transport/collectives/transfer_schedule.hpp"
#include "transport/job/control_format.hpp"

namespace weft::algorithm_test {
namespace {

CollectiveCall make_call(CollectiveKind kind, int n, std::int64_t count, bool in_place) {
  CollectiveCall call{.kind = kind, .atoms = {1}, .source = 4096, .count = count};
  call.destination = in_place ? 4096 : 1 << 20;
  if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter) call.outer = 3;
  if (kind == CollectiveKind::all_to_all) {
    call.shape = Shape{2 * n, 3, count};
    call.split_dim = 0;
    call.concat_dim = 1;
  }
  if (kind == CollectiveKind::broadcast) call.from = {n - 1};
  if (kind == CollectiveKind::permute) {
    for (int i = 0; i < n; ++i) call.from.push_back((i + 1) % n);
  }
  return call;
}

TEST(Algorithm, CutsALargeSumBetweenHosts) {
  CollectiveCall call = make_call(CollectiveKind::all_reduce, 2, 8192, true);
  EXPECT_EQ(choose_network_algorithm(call, 2), Algorithm::pull);
  EXPECT_EQ(choose_network_algorithm(call, 3), Algorithm::slices);
  call.count = 8193;
  EXPECT_EQ(choose_network_algorithm(call, 2), Algorithm::slices);
  call.kind = CollectiveKind::all_gather;
  EXPECT_EQ(choose_network_algorithm(call, 2), Algorithm::pull);
  call.count = 0;
  EXPECT_EQ(choose_network_algorithm(call, 2), Algorithm::signal);
}

/// Returns the bytes that a chip fetches from others.
std::int64_t bytes_fetched(const TransferSchedule& schedule, int n, int index) {
  std::int64_t elements = 0;
  for (const Stage& stage : schedule.stages) {
    for (const Transfer& transfer : stage) {
      if (transfer.from.member == kAllMembers) elements += (n - 1) * transfer.count;
      if (transfer.from.member >= 0 && transfer.from.member != index) elements += transfer.count;
    }
  }
  return elements * byte_size(schedule.dtype);
}

TEST(Algorithm, SlicesMoveTheFewestBytes) {
  for (const int n : {2, 3, 5, 8, 64}) {
    const CollectiveCall call = make_call(CollectiveKind::all_reduce, n, 1 << 18, true);
    const auto bytes = static_cast<double>(call.count * byte_size(call.dtype));
    std::int64_t sum = 0;
    for (int index = 0; index < n; ++index) {
      const std::int64_t fetched =
          bytes_fetched(make_schedule(Algorithm::slices, call, n, index), n, index);
      EXPECT_LE(static_cast<double>(fetched), 1.02 * 2 * (n - 1) / n * bytes) << n;
      sum += fetched;
    }
    EXPECT_EQ(static_cast<double>(sum), 2 * (n - 1) * bytes);
  }
}

TEST(Algorithm, IsChosenByKindBytesAndChips) {
  CollectiveCall call = make_call(CollectiveKind::all_reduce, 2, 512, true);
  EXPECT_EQ(choose_algorithm(call, 2, false), Algorithm::mailbox);
  EXPECT_EQ(choose_algorithm(call, 1, false), Algorithm::push);
  EXPECT_EQ(choose_algorithm(call, 3, false), Algorithm::push);
  EXPECT_EQ(choose_algorithm(call, 32, true), Algorithm::mailbox);
  EXPECT_EQ(choose_algorithm(call, 33, true), Algorithm::push);
  call.count = 513;
  EXPECT_EQ(choose_algorithm(call, 2, false), Algorithm::push);
  call.count = 4097;  // one more than fits in a mailbox
  EXPECT_EQ(choose_algorithm(call, 2, true), Algorithm::push);
  call.kind = CollectiveKind::permute;
  EXPECT_EQ(choose_algorithm(call, 3, true), Algorithm::pull);
  call.kind = CollectiveKind::all_gather;
  EXPECT_EQ(choose_algorithm(call, 3, true), Algorithm::push);
  call.shared = true;
  EXPECT_EQ(choose_algorithm(call, 3, true), Algorithm::signal);
  call.destination = 1 << 20;
  EXPECT_EQ(choose_algorithm(call, 3, true), Algorithm::share);
  call.shared = false;
  call.count = 10;
  EXPECT_EQ(choose_algorithm(call, 3, true), Algorithm::mailbox);
  call.count = 4;
  call.kind = CollectiveKind::broadcast;
  EXPECT_EQ(choose_algorithm(call, 2, false), Algorithm::slots);
  EXPECT_EQ(choose_algorithm(call, 1, false), Algorithm::push);
  call.count = 5;
  EXPECT_EQ(choose_algorithm(call, 2, false), Algorithm::mailbox);
  call.count = 0;
  EXPECT_EQ(choose_algorithm(call, 2, true), Algorithm::signal);
  call.kind = CollectiveKind::barrier;
  EXPECT_EQ(choose_algorithm(call, 2, true), Algorithm::signal);
}

std::string text_of(Algorithm algorithm, const CollectiveCall& call, int index) {
  return to_string(make_schedule(algorithm, call, 2, index), 2);
}

TEST(TransferSchedule, SaysWhatAChipReadsAndWrites) {
  const CollectiveCall reduce = make_call(CollectiveKind::all_reduce, 2, 20, true);
  EXPECT_EQ(text_of(Algorithm::push, reduce, 0),
            "  sync\n"
            "  reduce arena 0+1 @ 4096 to arena 0+1 @ 4096: 16 elements\n"
            "  sync\n");
  EXPECT_EQ(text_of(Algorithm::push, reduce, 1),
            "  sync\n"
            "  reduce arena 0+1 @ 4160 to arena 0+1 @ 4160: 4 elements\n"
            "  sync\n");
  EXPECT_EQ(text_of(Algorithm::mailbox, reduce, 1),
            "  copy arena 1 @ 4096 to mailbox 1 @ 0: 20 elements\n"
            "  sync\n"
            "  reduce mailbox 0+1 @ 0 to arena 1 @ 4096: 20 elements\n");
  CollectiveCall gather = make_call(CollectiveKind::all_gather, 2, 5, false);
  gather.outer = 1;
  EXPECT_EQ(text_of(Algorithm::push, gather, 1),
            "  sync\n"
            "  copy arena 1 @ 4096 to arena 0+1 @ 1048596: 5 elements\n"
            "  sync\n");
  EXPECT_EQ(text_of(Algorithm::share, gather, 1),
            "  copy arena 1 @ 4096 to arena 0 @ 1048596: 5 elements\n"
            "  sync\n");
  gather.outer = 3;
  EXPECT_EQ(text_of(Algorithm::pull, gather, 0),
            "  sync\n"
            "  copy arena 0 @ 4096 to arena 0 @ 1048576: 5 elements, "
            "3 times (20 bytes on, 40 bytes on)\n"
            "  copy arena 1 @ 4096 to arena 0 @ 1048596: 5 elements, "
            "3 times (20 bytes on, 40 bytes on)\n"
            "  sync\n");
  EXPECT_EQ(text_of(Algorithm::push, make_call(CollectiveKind::broadcast, 2, 20, true), 0),
            "  sync\n"
            "  copy arena 1 @ 4096 to arena 0+1 @ 4096: 16 elements\n"
            "  sync\n");
  EXPECT_EQ(text_of(Algorithm::pull, make_call(CollectiveKind::permute, 2, 5, false), 1),
            "  sync\n"
            "  copy arena 0 @ 4096 to arena 1 @ 1048576: 5 elements\n"
            "  sync\n");
  EXPECT_EQ(text_of(Algorithm::signal, make_call(CollectiveKind::barrier, 2, 0, true), 0),
            "  sync\n");
}

/// A byte of a member's memory: the region, the member and the offset.
using Byte = std::tuple<TransferEnd::Region, int, std::size_t>;

/// The transfers of all chips of a group between two syncs, as counts of those that read and write
/// each byte.
struct Phase {
  struct Access {
    int readers = 0;  ///< not counting a transfer that writes it too
    int writers = 0;
  };
  std::map<Byte, Access> bytes;
  std::vector<std::size_t> loads, stores;  ///< bytes, indexed by chip

  explicit Phase(int n) : loads(static_cast<std::size_t>(n)), stores(static_cast<std::size_t>(n)) {}

  void add(const Transfer& whole, int chip, int n, std::size_t element) {
    for_each_part(whole, [&](std::size_t from_offset, std::size_t to_offset) {
      Transfer part = whole;
      part.from.offset += from_offset;
      part.to.offset += to_offset;
      add_part(part, chip, n, element);
    });
  }

  void add_part(const Transfer& transfer, int chip, int n, std::size_t element) {
    const std::size_t size = static_cast<std::size_t>(transfer.count) * element;
    const auto members = [n](const TransferEnd& place) {
      std::vector<int> all;
      for (int member = 0; member < n; ++member) all.push_back(member);
      return place.member == kAllMembers ? all : std::vector{place.member};
    };
    const bool in_place = transfer.from.region == transfer.to.region &&
                          transfer.from.offset == transfer.to.offset &&
                          transfer.from.member == transfer.to.member;
    for (const int member : members(transfer.from)) {
      loads[static_cast<std::size_t>(chip)] += size;
      for (std::size_t i = 0; i < size && !in_place; ++i) {
        ++bytes[{transfer.from.region, member, transfer.from.offset + i}].readers;
      }
    }
    for (const int member : members(transfer.to)) {
      stores[static_cast<std::size_t>(chip)] += size;
      for (std::size_t i = 0; i < size; ++i) {
        ++bytes[{transfer.to.region, member, transfer.to.offset + i}].writers;
      }
    }
  }
};

/// Calls `body` for every kind of collective and every algorithm for it, in groups of 1 to 5 chips.
template <typename Body>
void for_every_schedule(const Body& body) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                       CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                                       CollectiveKind::permute,        CollectiveKind::broadcast};
  for (const CollectiveKind kind : kKinds) {
    const bool can_be_in_place =
        kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
    for (const Algorithm algorithm :
         {Algorithm::mailbox, choose_algorithm(make_call(kind, 5, 1 << 20, false), 5, false)}) {
      for (int n = 1; n <= 5; ++n) {
        for (const std::int64_t count : {1, 16, 37}) {
          for (const bool in_place : {false, true}) {
            if (in_place && !can_be_in_place) continue;
            const CollectiveCall call = make_call(kind, n, count, in_place);
            SCOPED_TRACE(to_string(make_schedule(algorithm, call, n, 0), n));
            Phase before(n);
            Phase after(n);
            for (int chip = 0; chip < n; ++chip) {
              const TransferSchedule schedule = make_schedule(algorithm, call, n, chip);
              ASSERT_EQ(schedule.sync_count(), has_exit_sync(algorithm) ? 2U : 1U);
              for (const Transfer& transfer : schedule.stages[0]) before.add(transfer, chip, n, 4);
              for (const Transfer& transfer : schedule.stages[1]) after.add(transfer, chip, n, 4);
            }
            body(call, algorithm, n, before, after);
          }
        }
      }
    }
  }
}

TEST(TransferSchedule, WritesEveryByteOfEveryDestinationOnce) {
  for_every_schedule(
      [](const CollectiveCall& call, Algorithm, int n, const Phase&, const Phase& after) {
        std::size_t written = 0;
        for (const auto& [byte, access] : after.bytes) {
          if (access.writers == 0) continue;
          const auto [region, member, offset] = byte;
          EXPECT_EQ(region, TransferEnd::Region::arena);
          EXPECT_EQ(access.writers, 1) << "member " << member << " @ " << offset;
          EXPECT_GE(offset, call.destination);
          EXPECT_LT(offset, call.destination + bytes_of(call, n).destination);
          ++written;
        }
        EXPECT_EQ(written, static_cast<std::size_t>(n) * bytes_of(call, n).destination);
      });
}

TEST(TransferSchedule, NeverReadsWhatAnotherTransferWritesBetweenTheSameSyncs) {
  for_every_schedule([](const CollectiveCall& call, Algorithm algorithm, int, const Phase& before,
                        const Phase& after) {
    const bool own_part_stays = call.kind == CollectiveKind::broadcast &&
                                algorithm == Algorithm::push && call.source == call.destination;
    for (const Phase* phase : {&before, &after}) {
      for (const auto& [byte, access] : phase->bytes) {
        const auto [region, member, offset] = byte;
        // The root of a broadcast in place writes its own part to itself, which perform() skips.
        if (own_part_stays && member == call.from[0]) continue;
        EXPECT_TRUE(access.readers == 0 || access.writers == 0) << member << " @ " << offset;
      }
    }
  });
}

TEST(TransferSchedule, LoadsAndStoresWhatTheTableOfAlgorithmsSays) {
  for_every_schedule([](const CollectiveCall& call, Algorithm algorithm, int group_size,
                        const Phase& before, const Phase& after) {
    const CallBytes bytes = bytes_of(call, group_size);
    const auto n = static_cast<std::size_t>(group_size);
    const bool reduces =
        call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::reduce_scatter;
    std::size_t all_loads = 0;
    std::size_t all_stores = 0;
    for (std::size_t chip = 0; chip < n; ++chip) {
      const bool fills =
          algorithm == Algorithm::mailbox &&
          (call.kind != CollectiveKind::broadcast || static_cast<int>(chip) == call.from[0]);
      EXPECT_EQ(before.loads[chip], fills ? bytes.source : 0);
      EXPECT_EQ(before.stores[chip], fills ? bytes.source : 0);
      all_loads += after.loads[chip];
      all_stores += after.stores[chip];
      if (algorithm == Algorithm::push) continue;  // slices have different sizes
      EXPECT_EQ(after.loads[chip], reduces ? n * bytes.destination : bytes.destination);
      EXPECT_EQ(after.stores[chip], bytes.destination);
    }
    if (algorithm == Algorithm::push) {
      const bool one_source = call.kind == CollectiveKind::broadcast;
      EXPECT_EQ(all_loads, one_source ? bytes.source : n * bytes.source);
      EXPECT_EQ(all_stores, n * bytes.destination);
    }
  });
}

}  // namespace
}  // namespace weft::algorithm_test
