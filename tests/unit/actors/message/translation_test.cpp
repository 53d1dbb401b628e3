#include "actors/message/translation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weft/actor/endpoints.hpp>
#include <weft/actor/pipe.hpp>
#include <weft/message.hpp>
#include <weft/tensor/error.hpp>

#include "actors/message/schema.hpp"
#include "actors/message/tensor_bytes.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::translation_test {

struct Old {
  std::int32_t action = 0;
  float reward = 0;
  std::string note;
};
struct New {
  std::optional<std::string> note;
  std::int64_t action = 0;
  double rate = 0.5;
  std::vector<int> extra;
};
struct Frame {
  int number = 0;
  HostTensor image;
};
/// A type whose fields' names contain names of types: "actor" and "tensor".
struct Factor {
  float actor_rate = 2;
  int tensors = 1;
};
struct Factors {
  Factor factor{.actor_rate = 0, .tensors = 0};
  Factor other{.actor_rate = 3, .tensors = 1};
  PipeWriter<int> writer{};
};
struct LaterFrame {
  HostTensor image;
  std::array<std::uint8_t, 2> mode{1, 2};
  std::uint16_t number = 0;
};

}  // namespace weft::translation_test

WEFT_MESSAGE(weft::translation_test::Old, action, reward, note);
WEFT_MESSAGE(weft::translation_test::New, note, action, rate, extra);
WEFT_MESSAGE(weft::translation_test::Frame, number, image);
WEFT_MESSAGE(weft::translation_test::LaterFrame, image, mode, number);
WEFT_MESSAGE(weft::translation_test::Factor, actor_rate, tensors);
WEFT_MESSAGE(weft::translation_test::Factors, factor, other, writer);

namespace weft::translation_test {
namespace {

using testing::expect_error;

EndpointSchema takes(const std::string& type) { return parse_endpoint_schema("f(" + type + ")"); }

template <typename From>
EndpointSchema takes() {
  return takes(MessageCodec<From>::schema());
}

/// Translates a value of one type into one of another.
template <typename To, typename From>
To translated(const From& value) {
  MessageWriter written;
  MessageCodec<From>::put(written, value);
  const EndpointSchema from = takes<From>();
  const EndpointSchema to = takes<To>();
  EXPECT_EQ(why_untranslatable(from, to), "");
  const MessageWriter out = translated_arguments(from, to, written);
  const std::vector<MessagePayload> payloads = payloads_of(out);
  MessageReader in(out.bytes(), payloads);
  To read = MessageCodec<To>::get(in);
  in.finish();
  return read;
}

TEST(Schemas, HaveTheDefaultsOfNamedFields) {
  EXPECT_EQ(MessageCodec<Old>::schema(), "{action:i32,reward:f32,note:text}");
  EXPECT_EQ(MessageCodec<New>::schema(),
            "{note:text?,action:i64,rate:f64=000000000000e03f,extra:i32[]}");
  EXPECT_EQ(MessageCodec<LaterFrame>::schema(), "{image:tensor,mode:u8[2]=0102,number:u16}");
}

TEST(Schemas, HaveTheDefaultsOfFieldsWithinFields) {
  const std::string factor = "{actor_rate:f32=00000040,tensors:i32=01000000}";
  EXPECT_EQ(MessageCodec<Factors>::schema(), "{factor:" + factor +
                                                 "=0000000000000000,other:" + factor +
                                                 "=0000404001000000,writer:pipe_writer<i32>}");
  const Factors made = [] {
    MessageWriter none;
    const EndpointSchema to = takes("{factor:" + std::string("{a:f32=00000040}") + "=00000000}");
    const MessageWriter out = translated_arguments(takes("{}"), to, none);
    Factors read;
    MessageReader in(out.bytes());
    read.factor.actor_rate = MessageCodec<float>::get(in);
    return read;
  }();
  EXPECT_EQ(made.factor.actor_rate, 0) << "the default of the whole, not of its part";
}

TEST(Schemas, AreParsed) {
  const EndpointSchema schema =
      parse_endpoint_schema("act({a:f32[4]=00,map<text,enum:u8?[]>},acme.date)->{}[] const");
  EXPECT_EQ(schema.name, "act");
  EXPECT_TRUE(schema.is_const);
  ASSERT_EQ(schema.arguments.size(), 2U);
  const SchemaType& record = schema.arguments[0];
  EXPECT_EQ(record.text, "{a:f32[4]=00,map<text,enum:u8?[]>}");
  ASSERT_EQ(record.parts.size(), 2U);
  EXPECT_EQ(record.parts[0].name, "a");
  EXPECT_EQ(record.parts[0].type.kind, SchemaType::Kind::array);
  EXPECT_EQ(record.parts[0].type.count, 4U);
  EXPECT_EQ(record.parts[0].initial, std::vector<std::byte>{std::byte{0}});
  EXPECT_EQ(record.parts[1].name, "");
  EXPECT_EQ(record.parts[1].type.parts[1].type.text, "enum:u8?[]");
  EXPECT_TRUE(record.parts[1].type.parts[1].type.parts[0].type.parts[0].type.is_enum);
  EXPECT_EQ(schema.arguments[1].kind, SchemaType::Kind::other);
  EXPECT_EQ(schema.result->kind, SchemaType::Kind::list);
}

TEST(Schemas, ThatCantBeAreRefusedWithTheirPlace) {
  expect_error(Errc::corrupt, {"schema \"act(i32\": expected \")\" at character 8"},
               [] { parse_endpoint_schema("act(i32"); });
  expect_error(Errc::corrupt, {"its end at character 9"},
               [] { parse_endpoint_schema("act(i32)x"); });
  expect_error(Errc::corrupt, {"two hex digits"}, [] { parse_endpoint_schema("act({a:i32=0})"); });
  expect_error(Errc::corrupt, {"number type"}, [] { parse_endpoint_schema("act(enum:text)"); });
  expect_error(Errc::corrupt, {"at most 65536"},
               [] { parse_endpoint_schema("act(i8[99999999999])"); });
  expect_error(Errc::corrupt, {"at most 32 levels"},
               [] { parse_endpoint_schema("f(" + std::string(40, '{')); });
}

TEST(Translations, FindFieldsByNameAndWidenNumbers) {
  const New made = translated<New>(Old{.action = -7, .reward = 2, .note = "hi"});
  EXPECT_EQ(made.note, "hi");
  EXPECT_EQ(made.action, -7);
  EXPECT_EQ(made.rate, 0.5);  // the default in New, because Old has no rate
  EXPECT_TRUE(made.extra.empty());
}

TEST(Translations, KeepTensorsWithTheirFields) {
  Frame frame{.number = 3, .image = HostTensor(std::vector<float>{1, 2, 3}, {3})};
  const auto from = takes<Frame>();
  EXPECT_EQ(why_untranslatable(from, takes<LaterFrame>()), "a i32 can't become a u16");
  EXPECT_EQ(why_untranslatable(from, takes("{image:tensor,mode:u8[2]=0102,number:i64}")), "");
  const auto to = takes("{image:tensor,mode:u8[2]=0102,number:i64}");
  MessageWriter written;
  MessageCodec<Frame>::put(written, frame);
  const MessageWriter out = translated_arguments(from, to, written);
  ASSERT_EQ(out.tensors().size(), 1U);
  EXPECT_EQ(out.tensors()[0].elements.data(), frame.image.elements.data());  // not copied
}

TEST(Translations, DropATensorThatTheTakerLacks) {
  Frame frame{.number = 3, .image = HostTensor(std::vector<float>{1, 2, 3}, {3})};
  MessageWriter written;
  MessageCodec<Frame>::put(written, frame);
  const MessageWriter out = translated_arguments(takes<Frame>(), takes("{number:i32}"), written);
  EXPECT_TRUE(out.tensors().empty());
  EXPECT_EQ(out.bytes().size(), 4U);
}

TEST(Translations, OfContainersTranslateTheirElements) {
  const auto wide = translated<std::vector<std::int64_t>>(std::vector<std::int16_t>{-1, 2});
  EXPECT_EQ(wide, (std::vector<std::int64_t>{-1, 2}));
  const auto map = translated<std::map<std::string, double>>(
      std::map<std::string, float>{{"a", 0.25F}, {"b", -1.0F}});
  EXPECT_EQ(map, (std::map<std::string, double>{{"a", 0.25}, {"b", -1.0}}));
  EXPECT_EQ(translated<std::optional<std::int32_t>>(std::uint16_t{65535}), 65535);
}

TEST(Translations, ThatLoseWhatTheTakerNeedsAreRefused) {
  const auto why = [](const std::string& from, const std::string& to) {
    return why_untranslatable(takes(from), takes(to));
  };
  EXPECT_EQ(why("i64", "i32"), "a i64 can't become a i32");
  EXPECT_EQ(why("i32", "u64"), "a i32 can't become a u64");
  EXPECT_EQ(why("f32", "i64"), "a f32 can't become a i64");
  EXPECT_EQ(why("i32?", "i32"), "a i32? can't become a i32");
  EXPECT_EQ(why("i32[3]", "i32[4]"), "a i32[3] can't become a i32[4]");
  EXPECT_EQ(why("{i32}", "{i32,i32}"),
            "{i32} has 1 fields and {i32,i32} has 2, and not both give them names (WEFT_MESSAGE)");
  EXPECT_EQ(why("{a:i32}", "{a:i32,t:tensor}"),
            "field \"t\" of {a:i32,t:tensor} is missing, and a tensor has no default value");
  EXPECT_EQ(why("acme.date", "acme.date"), "the bytes of a acme.date are unknown");
  EXPECT_EQ(why_untranslatable(parse_endpoint_schema("f(i32)"), parse_endpoint_schema("f()")),
            "1 arguments are given, but 0 taken");
  EXPECT_EQ(why_untranslatable(parse_endpoint_schema("f()->i32"), parse_endpoint_schema("f()")),
            "a i32 is expected, but nothing returned");
  EXPECT_EQ(why_untranslatable(parse_endpoint_schema("f()"), parse_endpoint_schema("f()->i32")),
            "");
}

TEST(Translations, CheckTheBytes) {
  const auto from = parse_endpoint_schema("f()->bool");
  const std::array bytes{std::byte{2}};
  expect_error(Errc::corrupt, {"a bool of value 2"},
               [&] { translated_result(from, from, MessageReader(bytes)); });
  const auto list = parse_endpoint_schema("f()->{}[]");
  const std::array<std::byte, 4> many{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                      std::byte{0xff}};
  expect_error(Errc::corrupt, {"a list of 4294967295 elements"},
               [&] { translated_result(list, list, MessageReader(many)); });
}

}  // namespace
}  // namespace weft::translation_test
