#include <weft/message.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::message_test {

enum class Color : std::uint8_t { red = 1, green = 7 };
struct Empty {
  friend bool operator==(const Empty&, const Empty&) = default;
};
struct Range {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
struct Deep {
  std::string name;
  std::array<float, 4> state{};
  std::optional<Range> range;
  std::map<std::string, std::vector<Range>> ranges;
  std::vector<std::string> words;
  std::vector<bool> flags;
  Color color = Color::red;
  friend bool operator==(const Deep&, const Deep&) = default;
};
struct Sixteen {
  std::int8_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
  std::string i = "i", j = "j";
  double k = 0.5, l = 0.25;
  bool m = true, n = false;
  std::uint64_t o = 15, p = 16;
  friend bool operator==(const Sixteen&, const Sixteen&) = default;
};
struct Named {
  int action = 0;
  float log_probability = 0;
  friend bool operator==(const Named&, const Named&) = default;
};

}  // namespace weft::message_test

WEFT_MESSAGE(weft::message_test::Named, action, log_probability);

namespace weft::message_test {
namespace {

using testing::expect_error;

template <typename T>
T round_trip(const T& value) {
  MessageWriter out;
  MessageCodec<T>::put(out, value);
  MessageReader in(out.bytes());
  T back = MessageCodec<T>::get(in);
  in.finish();
  return back;
}

TEST(Message, EveryTypeComesBack) {
  EXPECT_EQ(round_trip(std::int8_t{-5}), -5);
  EXPECT_EQ(round_trip(std::numeric_limits<std::uint64_t>::max()),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(round_trip(2.5), 2.5);
  EXPECT_EQ(round_trip(true), true);
  EXPECT_EQ(round_trip(Color::green), Color::green);
  EXPECT_EQ(round_trip(std::string(1000, 'x')), std::string(1000, 'x'));
  EXPECT_EQ(round_trip(Empty{}), Empty{});
  EXPECT_EQ(round_trip(Range{3, -4}), (Range{3, -4}));
  EXPECT_EQ(round_trip(Named{1, 0.5F}), (Named{1, 0.5F}));
  EXPECT_EQ(round_trip(Sixteen{.a = -1, .j = "jot"}), (Sixteen{.a = -1, .j = "jot"}));
  const Deep deep{.name = "deep",
                  .state = {1, 2, 3, 4},
                  .range = Range{1, 2},
                  .ranges = {{"a", {{1, 2}, {3, 4}}}, {"b", {}}},
                  .words = {"one", "", "three"},
                  .flags = {true, false, true},
                  .color = Color::green};
  EXPECT_EQ(round_trip(deep), deep);
  EXPECT_EQ(round_trip(Deep{}), Deep{});
  std::vector<double> many(5000);
  std::iota(many.begin(), many.end(), 0.5);
  EXPECT_EQ(round_trip(many), many);
}

TEST(Message, ASchemaNamesTheTypesInTheirOrder) {
  EXPECT_EQ(MessageCodec<Range>::schema(), "{i64,i64}");
  EXPECT_EQ(MessageCodec<Named>::schema(), "{action:i32,log_probability:f32}");
  EXPECT_EQ(MessageCodec<Empty>::schema(), "{}");
  EXPECT_EQ(MessageCodec<Deep>::schema(),
            "{text,f32[4],{i64,i64}?,map<text,{i64,i64}[]>,text[],bool[],enum:u8}");
  EXPECT_EQ(MessageCodec<HostTensor>::schema(), "tensor");
  EXPECT_EQ(MessageCodec<Sixteen>::schema(),
            "{i8,i8,i8,i8,i8,i8,i8,i8,text,text,f64,f64,bool,bool,u64,u64}");
}

TEST(Message, TensorsKeepTheirElementsWhereTheyAre) {
  const HostTensor tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  MessageWriter out;
  MessageCodec<HostTensor>::put(out, tensor);
  ASSERT_EQ(out.tensors().size(), 1U);
  EXPECT_EQ(out.tensors()[0].elements.data(), tensor.elements.data());
  EXPECT_LT(out.bytes().size(), 24U);
  const auto owner = std::make_shared<int>(0);
  const std::vector<MessagePayload> payloads{
      {.bytes = {tensor.elements.data(), 24}, .owner = owner}};
  MessageReader in(out.bytes(), payloads);
  const HostTensor back = MessageCodec<HostTensor>::get(in);
  in.finish();
  EXPECT_EQ(back.shape, (Shape{2, 3}));
  EXPECT_EQ(back.get<float>().data(), tensor.get<float>().data());
  EXPECT_EQ(back.owner, owner);
}

template <typename T>
void read(std::vector<std::uint8_t> bytes, std::vector<MessagePayload> payloads = {}) {
  MessageReader in(std::as_bytes(std::span(bytes)), payloads);
  MessageCodec<T>::get(in);
  in.finish();
}

TEST(Message, BytesThatCantBeAreRefused) {
  expect_error(Errc::corrupt, {"ends 5 bytes too early"}, [] { read<std::int64_t>({1, 2, 3}); });
  expect_error(Errc::corrupt, {"1 bytes and 0 tensors more than"}, [] { read<bool>({1, 2}); });
  expect_error(Errc::corrupt, {"a bool of value 2"}, [] { read<bool>({2}); });
  expect_error(Errc::corrupt, {"a list of 4294967295 elements, but only 1 bytes follow"}, [] {
    read<std::string>({255, 255, 255, 255, 0});
  });
  expect_error(Errc::corrupt, {"a list of 3 elements, but only 8 bytes follow"}, [] {
    read<std::vector<float>>({3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8});
  });
  expect_error(Errc::corrupt, {"a list of 16777216 elements"}, [] {
    read<std::vector<Empty>>({0, 0, 0, 1});
  });
  expect_error(Errc::corrupt, {"a tensor of dtype 77 and 0 dims"}, [] {
    read<HostTensor>({77, 0});
  });
  expect_error(Errc::corrupt, {"fewer tensors than its bytes say"}, [] {
    read<HostTensor>({3, 0});
  });
  expect_error(Errc::corrupt, {"dim 0 is -1"}, [] {
    read<HostTensor>({3, 1, 255, 255, 255, 255, 255, 255, 255, 255});
  });
  const std::vector<std::byte> payload(8);
  expect_error(Errc::corrupt, {"a tensor i64[2] in 8 bytes"}, [&] {
    read<HostTensor>({3, 1, 2, 0, 0, 0, 0, 0, 0, 0}, {{.bytes = payload, .owner = nullptr}});
  });
}

TEST(Message, AMessageHasALargestSize) {
  MessageWriter out;
  MessageCodec<std::string>::put(out, std::string(kMessageBytesMax, 'x'));
  expect_error(Errc::invalid_argument, {"a message has 65540 bytes and 0 tensors"},
               [&] { (void)out.bytes(); });
}

}  // namespace
}  // namespace weft::message_test
