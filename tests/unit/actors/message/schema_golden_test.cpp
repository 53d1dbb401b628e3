/// Compares the schemas of types of messages, and the bytes of values, with
/// tests/golden/messages/schemas.txt. Programs of other builds depend on both: a change of one of
/// them is a change of the format of messages.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/actor/actor_ref.hpp>
#include <weft/actor/endpoints.hpp>
#include <weft/actor/pipe.hpp>
#include <weft/actor/reply.hpp>
#include <weft/message.hpp>

#include "data/files/envelope.hpp"
#include "tests/support/golden.hpp"

namespace weft::schema_golden_test {

enum class Color : std::uint8_t { red = 1, green = 7 };
enum class Wide : std::int32_t { far = -3 };
struct Empty {};
struct Range {
  std::int64_t begin = 1;
  std::int64_t end = 2;
};
struct Deep {
  std::string name = "x";
  std::array<float, 4> state{1, 2, 3, 4};
  std::optional<Range> range{Range{}};
  std::map<std::string, std::vector<Range>> ranges{{"all", {Range{}}}};
  std::vector<bool> flags{true, false};
  Color color = Color::green;
};
struct Named {
  int action = 3;
  float rate = 0.5;
  std::vector<std::string> words{"a", "bc"};
  Range range{.begin = 4, .end = 5};
  std::optional<double> limit{};
};
struct Frame {
  std::uint32_t number = 7;
  HostTensor image{};
};
struct Player {
  double act(const Deep& seen, int times) const;
  void reset();
  void ask(const Range& range, Reply<std::string> reply);
  using endpoints = Endpoints<&Player::act, &Player::reset, &Player::ask>;
};

}  // namespace weft::schema_golden_test

WEFT_MESSAGE(weft::schema_golden_test::Named, action, rate, words, range, limit);
WEFT_MESSAGE(weft::schema_golden_test::Frame, number, image);

namespace weft::schema_golden_test {
namespace {

class Listing {
 public:
  /// Appends a line with the schema of T and a hash of it.
  template <typename T>
  void type(std::string_view name) {
    line(name, MessageCodec<T>::schema());
  }
  /// Appends the line that type() appends, and a line with the bytes of a value.
  template <typename T>
  void value(std::string_view name, const T& value) {
    type<T>(name);
    MessageWriter out;
    MessageCodec<T>::put(out, value);
    text_ += "  bytes ";
    for (const std::byte each : out.bytes()) {
      text_ += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    }
    if (out.bytes().empty()) text_ += "none";
    text_ += fmt::format("\n  tensors {}\n", out.tensors().size());
  }
  void line(std::string_view name, const std::string& schema) {
    text_ += fmt::format("{}\n  schema {}\n  hash {:016x}\n", name, schema,
                         xxh3(std::as_bytes(std::span(schema))));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

TEST(MessageSchemas, AreGolden) {
  Listing listing;
  listing.value("bool", true);
  listing.value("std::int8_t", std::int8_t{-5});
  listing.value("std::uint8_t", std::uint8_t{200});
  listing.value("std::int16_t", std::int16_t{-2});
  listing.value("std::uint16_t", std::uint16_t{40'000});
  listing.value("std::int32_t", std::int32_t{-100'000});
  listing.value("std::uint32_t", std::uint32_t{3'000'000'000});
  listing.value("std::int64_t", std::int64_t{-5'000'000'000});
  listing.value("std::uint64_t", std::uint64_t{1} << 63U);
  listing.value("float", 0.5F);
  listing.value("double", -2.25);
  listing.value("enum of std::uint8_t", Color::green);
  listing.value("enum of std::int32_t", Wide::far);
  listing.value("std::string", std::string("weft"));
  listing.value("std::vector<float>", std::vector<float>{1, 2});
  listing.value("std::vector<bool>", std::vector<bool>{true, false, true});
  listing.value("std::vector<std::string>", std::vector<std::string>{"a", "", "bc"});
  listing.value("std::array<std::int16_t, 3>", std::array<std::int16_t, 3>{1, 2, 3});
  listing.value("std::optional<int> with a value", std::optional<int>(7));
  listing.value("std::optional<int> without", std::optional<int>());
  listing.value("std::map<std::string, int>", std::map<std::string, int>{{"a", 1}, {"b", 2}});
  listing.value("HostTensor", HostTensor());
  listing.value("an empty aggregate", Empty{});
  listing.value("an aggregate", Range{});
  listing.value("a nested aggregate", Deep{});
  listing.value("an aggregate with names and default values", Named{});
  listing.value("an aggregate with names and a tensor", Frame{});
  listing.type<ActorRef<Player>>("ActorRef");
  listing.type<PipeWriter<Range>>("PipeWriter");
  listing.type<PipeReader<Frame>>("PipeReader");
  listing.line("an endpoint with a result", detail::endpoint_schema<&Player::act>());
  listing.line("an endpoint without arguments", detail::endpoint_schema<&Player::reset>());
  listing.line("an endpoint with a Reply", detail::endpoint_schema<&Player::ask>());
  testing::expect_golden("messages/schemas.txt", listing.text());
}

}  // namespace
}  // namespace weft::schema_golden_test
