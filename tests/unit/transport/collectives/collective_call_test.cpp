#include "transport/collectives/collective_call.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "transport/collectives/call_record.hpp"
#include "transport/job/control_format.hpp"

namespace weft::collective_call_test {
namespace {

using testing::expect_error;

constexpr std::size_t kCapacity = 1 << 20;

CollectiveCall all_reduce() {
  return {.kind = CollectiveKind::all_reduce,
          .atoms = {1},
          .source = 4096,
          .destination = 8192,
          .count = 100,
          .name = "g"};
}

TEST(CollectiveCall, HasTheBytesOfItsKind) {
  CollectiveCall call = all_reduce();
  call.outer = 3;
  const auto expect_bytes = [&call](CollectiveKind kind, std::uint64_t source,
                                    std::uint64_t destination) {
    call.kind = kind;
    EXPECT_EQ(bytes_of(call, 4).source, source) << to_string(kind);
    EXPECT_EQ(bytes_of(call, 4).destination, destination) << to_string(kind);
  };
  expect_bytes(CollectiveKind::barrier, 0, 0);
  expect_bytes(CollectiveKind::all_reduce, 400, 400);
  expect_bytes(CollectiveKind::permute, 400, 400);
  expect_bytes(CollectiveKind::broadcast, 400, 400);
  expect_bytes(CollectiveKind::all_gather, 1200, 4800);
  expect_bytes(CollectiveKind::reduce_scatter, 4800, 1200);
  call.shape = Shape{8, 3, 2};
  expect_bytes(CollectiveKind::all_to_all, 192, 192);
}

TEST(CollectiveCall, IsRefusedWhereItCantBeCarriedOut) {
  const auto expect_refused = [](std::string_view word,
                                 const std::function<void(CollectiveCall&)>& change) {
    CollectiveCall call = all_reduce();
    change(call);
    expect_error(Errc::invalid_argument, {"'g'", word}, [&] { require_valid(call, 4, kCapacity); });
  };
  expect_refused("64", [](CollectiveCall& call) { call.source = 4100; });
  expect_refused("1048576", [](CollectiveCall& call) { call.destination = kCapacity - 64; });
  expect_refused("count = -1", [](CollectiveCall& call) { call.count = -1; });
  expect_refused("64 bits", [](CollectiveCall& call) { call.count = std::int64_t{1} << 62; });
  expect_refused("overlap", [](CollectiveCall& call) { call.destination = 4096 + 64; });
  expect_refused("overlap", [](CollectiveCall& call) {
    call.kind = CollectiveKind::all_gather;
    call.destination = call.source;
  });
  expect_refused("shared", [](CollectiveCall& call) { call.shared = true; });
  expect_refused("any", [](CollectiveCall& call) { call.dtype = DType::pred; });
  expect_refused("from = []", [](CollectiveCall& call) { call.kind = CollectiveKind::broadcast; });
  expect_refused("from = [4]", [](CollectiveCall& call) {
    call.kind = CollectiveKind::broadcast;
    call.from = {4};
  });
  expect_refused("expected 4", [](CollectiveCall& call) {
    call.kind = CollectiveKind::permute;
    call.from = {0, 1, 2};
  });
  expect_refused("2 dims", [](CollectiveCall& call) {
    call.kind = CollectiveKind::all_to_all;
    call.shape = Shape{4, 4};
    call.concat_dim = 2;
  });
  expect_refused("divisible", [](CollectiveCall& call) {
    call.kind = CollectiveKind::all_to_all;
    call.shape = Shape{6, 4};
  });
}

TEST(CollectiveCall, MayBeInPlaceOrEmpty) {
  CollectiveCall call = all_reduce();
  call.destination = call.source;
  require_valid(call, 4, kCapacity);
  call.count = 0;
  call.source = 7;  // an empty call may have any source
  require_valid(call, 4, kCapacity);
}

TEST(CollectiveCall, ComesBackFromItsWords) {
  CollectiveCall call = all_reduce();
  call.atoms = {2, 1};
  call.reduce = ReduceKind::min;
  call.dtype = DType::bf16;
  call.shared = true;
  const DecodedCall decoded = decode(encode(call));
  EXPECT_EQ(decoded.kind, call.kind);
  EXPECT_EQ(decoded.reduce, call.reduce);
  EXPECT_EQ(decoded.dtype, call.dtype);
  EXPECT_EQ(decoded.atoms, call.atoms);
  EXPECT_TRUE(decoded.shared);
  EXPECT_EQ(decoded.outer, 1);
  EXPECT_EQ(decoded.count, 100);
  EXPECT_EQ(decoded.source, 4096U);
  EXPECT_EQ(decoded.destination, 8192U);
}

TEST(CollectiveCall, HasASignatureOfAllButItsName) {
  std::set<std::uint64_t> signatures;
  const auto add = [&signatures](std::uint64_t number,
                                 const std::function<void(CollectiveCall&)>& change) {
    CollectiveCall call = all_reduce();
    change(call);
    signatures.insert(signature_of(number, digest_of(encode(call))));
  };
  add(1, [](CollectiveCall&) {});
  add(1, [](CollectiveCall& call) { call.name = "other"; });
  EXPECT_EQ(signatures.size(), 1U);
  add(2, [](CollectiveCall&) {});
  add(1, [](CollectiveCall& call) { call.kind = CollectiveKind::all_gather; });
  add(1, [](CollectiveCall& call) { call.atoms = {2}; });
  add(1, [](CollectiveCall& call) { call.reduce = ReduceKind::max; });
  add(1, [](CollectiveCall& call) { call.dtype = DType::i32; });
  add(1, [](CollectiveCall& call) { call.source = 64; });
  add(1, [](CollectiveCall& call) { call.destination = 64; });
  add(1, [](CollectiveCall& call) { call.outer = 2; });
  add(1, [](CollectiveCall& call) { call.count = 101; });
  const auto permute = [](std::vector<int> from) {
    return [from = std::move(from)](CollectiveCall& call) {
      call.kind = CollectiveKind::permute;
      call.from = from;
    };
  };
  add(1, permute({0, 1}));
  add(1, permute({1, 0}));
  const auto all_to_all = [](Shape shape, int split_dim, int concat_dim) {
    return [=](CollectiveCall& call) {
      call.kind = CollectiveKind::all_to_all;
      call.shape = shape;
      call.split_dim = split_dim;
      call.concat_dim = concat_dim;
    };
  };
  add(1, all_to_all({4, 2}, 0, 1));
  add(1, all_to_all({4, 2}, 1, 0));
  add(1, all_to_all({4, 4}, 0, 1));
  EXPECT_EQ(signatures.size(), 15U);
}

/// The words come from another process, so an error must be able to show any words.
TEST(CallRecord, ShowsWordsThatNoCallHas) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const auto shown = [&](const CallWords& words) {
    auto record = std::make_unique<CallRecord>();
    write_record(*record, 3, words, signature_of(3, digest_of(words)), "g");
    return to_string(read_record(*record).value(), mesh);
  };
  CallWords words = encode(all_reduce());
  EXPECT_EQ(shown(words), "all_reduce #3 'g' over {data}: add f32 1 x 100, offset 4096 to 8192");
  for (const std::uint64_t atoms : {0x10ULL, 0x101ULL, 0x3ULL, ~0ULL}) {
    words[1] = atoms;
    EXPECT_NE(shown(words).find("over {unknown atoms}"), std::string::npos) << shown(words);
  }
  words[0] = 0xffffff;
  EXPECT_EQ(shown(words).find("unknown #3"), 0U) << shown(words);
}

}  // namespace
}  // namespace weft::collective_call_test
