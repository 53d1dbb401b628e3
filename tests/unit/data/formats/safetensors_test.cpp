#include "data/formats/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/safetensors.hpp"
#include "tests/unit/transport/format/damage.hpp"

namespace weft::safetensors_test {
namespace {

using namespace std::string_literals;
using testing::expect_error;

/// Returns a file's header: the length of this JSON, and the JSON.
std::string with_length(const std::string& json) {
  const std::uint64_t json_bytes = json.size();
  std::string header(sizeof json_bytes, '\0');
  std::memcpy(header.data(), &json_bytes, sizeof json_bytes);
  return header + json;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Reads a file's header as its users do: first the length, then the JSON.
SafetensorsHeader read_file(std::span<const std::byte> file) {
  const std::uint64_t header_bytes =
      safetensors_header_bytes(file.first(std::min<std::size_t>(file.size(), 8)), file.size());
  return read_safetensors_header(file.first(header_bytes), file.size());
}

SafetensorsHeader read_json(const std::string& json, std::uint64_t data_bytes) {
  const std::string header = with_length(json);
  return read_safetensors_header(bytes_of(header), header.size() + data_bytes);
}

/// Python's json.dumps and struct.pack wrote this file, padded with spaces to a multiple of 8
/// bytes.
const std::string kPythonsFile =
    "\340\001\000\000\000\000\000\000"
    R"({"__metadata__": {"format": "pt", "\u00e9 \"q\"": "\u5b57"}, )"
    R"("fc1.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [11, 35]}, )"
    R"("step": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}, )"
    R"("mask": {"dtype": "BOOL", "shape": [3], "data_offsets": [8, 11]}, )"
    R"("empty": {"shape": [0, 7], "dtype": "F64", "data_offsets": [35, 35]}, )"
    R"("scale": {"dtype": "BF16", "data_offsets": [35, 37], "shape": [1]}, )"
    R"("half \u00e9": {"dtype": "F16", "shape": [2], "data_offsets": [37, 41]}}     )"
    "\376\377\377\377\377\377\377\377\001\000\001\000\000\200?\000\000\000\300\000\000`@"
    "\000\000\000\000`B\242\015\000\000\300@\200?\000<\0008"s;

TEST(Safetensors, ReadsAFileOfAnotherWriter) {
  const SafetensorsHeader header = read_file(bytes_of(kPythonsFile));
  EXPECT_EQ(header.data_begin, 488U);
  EXPECT_EQ(header.metadata,
            (std::map<std::string, std::string>{{"format", "pt"}, {"é \"q\"", "字"}}));
  const std::vector<SafetensorsEntry> expected{
      {"step", "I64", {}, 488, 496},           {"mask", "BOOL", {3}, 496, 499},
      {"fc1.weight", "F32", {2, 3}, 499, 523}, {"empty", "F64", {0, 7}, 523, 523},
      {"scale", "BF16", {1}, 523, 525},        {"half é", "F16", {2}, 525, 529}};
  EXPECT_EQ(header.tensors, expected);
  float last = 0;
  std::memcpy(&last, kPythonsFile.data() + header.tensors[2].end - sizeof last, sizeof last);
  EXPECT_EQ(last, 6.0F);
}

TEST(Safetensors, ReadsTheGoldenFilesOfTorch) {
  for (const std::string name :
       {"ops", "train_cnn", "train_gpt", "train_gpt_untied", "train_mlp"}) {
    SCOPED_TRACE(name);
    const std::string golden = "torch/" + name + ".safetensors";
    const std::string file = testing::read_golden(golden);
    const testing::Safetensors expected(golden);
    const SafetensorsHeader header = read_file(bytes_of(file));
    ASSERT_EQ(header.tensors.size(), expected.names("").size());
    for (const SafetensorsEntry& entry : header.tensors) {
      SCOPED_TRACE(entry.name);
      const auto dtype = dtype_of(entry.dtype);
      ASSERT_TRUE(dtype.has_value());
      EXPECT_EQ((TensorType{*dtype, Shape(entry.sizes)}), expected.type(entry.name));
      const auto elements = expected.elements<std::uint32_t>(entry.name);
      EXPECT_EQ(file.substr(entry.begin, entry.end - entry.begin),
                as_text(std::as_bytes(std::span(elements))));
    }
  }
}

TEST(Safetensors, KnowsTheDTypes) {
  struct Case {
    std::string name;
    std::uint64_t element_bytes;
    std::optional<DType> dtype;
  };
  const std::vector<Case> cases{
      {"BOOL", 1, DType::pred}, {"U8", 1, DType::u8},   {"I8", 1, DType::i8},
      {"F8_E5M2", 1, {}},       {"F8_E4M3", 1, {}},     {"I16", 2, {}},
      {"U16", 2, {}},           {"F16", 2, DType::f16}, {"BF16", 2, DType::bf16},
      {"I32", 4, DType::i32},   {"U32", 4, DType::u32}, {"F32", 4, DType::f32},
      {"F64", 8, DType::f64},   {"I64", 8, DType::i64}, {"U64", 8, {}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(dtype_of(c.name), c.dtype);
    const std::string json =
        fmt::format(R"({{"t":{{"dtype":"{}","shape":[3],"data_offsets":[0,{}]}}}})", c.name,
                    3 * c.element_bytes);
    EXPECT_EQ(read_json(json, 3 * c.element_bytes).tensors.at(0).dtype, c.name);
  }
  EXPECT_EQ(dtype_of("f32"), std::nullopt);
  EXPECT_EQ(dtype_of(""), std::nullopt);
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
  EXPECT_EQ(read_json("{}", 0).tensors.size(), 0U);
  EXPECT_EQ(read_json(R"({"__metadata__":{}}   )", 0).tensors.size(), 0U);
}

TEST(Safetensors, RefusesEveryTruncation) {
  expect_truncations_refused(bytes_of(kPythonsFile), read_file);
}

TEST(Safetensors, DamageIsRefusedOrInRange) {
  const testing::AlignedCopy copy(bytes_of(kPythonsFile));
  const auto file = copy.bytes();
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * read_file(file).data_begin; ++bit) {
    SCOPED_TRACE(bit);
    file[bit / 8] ^= std::byte{1} << (bit % 8);
    try {
      std::uint64_t covered = 0;
      for (const SafetensorsEntry& entry : read_file(file).tensors) {
        covered += entry.end - entry.begin;
        EXPECT_LE(entry.end, file.size());
      }
      EXPECT_EQ(covered, 41U);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::version) << error.what();
      ++refused;
    }
    file[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_GT(refused, 0);
}

TEST(Safetensors, RefusesALengthBeyondTheFileOrTheMaximum) {
  const auto header_bytes = [](std::uint64_t json_bytes, std::uint64_t file_bytes) {
    return safetensors_header_bytes(std::as_bytes(std::span(&json_bytes, 1)), file_bytes);
  };
  EXPECT_EQ(header_bytes(2, 10), 10U);
  EXPECT_EQ(header_bytes(100'000'000, 1'000'000'000), 100'000'008U);
  struct Case {
    std::uint64_t json_bytes;
    std::uint64_t file_bytes;
    std::string_view words;
  };
  for (const Case& c :
       {Case{3, 10, "a length of 3 bytes in a file of 10"}, Case{0, 7, "has 7 bytes"},
        Case{100'000'001, 1'000'000'000, "100000001 bytes; at most 100000000"},
        Case{~std::uint64_t{0}, ~std::uint64_t{0}, "18446744073709551615 bytes; at most"},
        Case{~std::uint64_t{7}, 100, "18446744073709551608 bytes; at most"}}) {
    SCOPED_TRACE(c.words);
    expect_error(Errc::corrupt, {c.words}, [&] { header_bytes(c.json_bytes, c.file_bytes); });
  }
  expect_error(Errc::corrupt, {"has 5 bytes, fewer than the 8"},
               [] { safetensors_header_bytes(bytes_of("abcde"), 5); });
}

TEST(Safetensors, RefusesAnotherNumberOfBytesThanTheHeaderHas) {
  const std::string header = with_length("{}");
  for (const std::size_t bytes : {header.size() - 1, header.size() + 1}) {
    expect_error(Errc::invalid_argument, {"bytes were given to read; the header has 10"}, [&] {
      read_safetensors_header(bytes_of((header + " ").substr(0, bytes)), header.size() + 1);
    });
  }
}

struct Refusal {
  std::string json;
  std::vector<std::string> words;
  std::uint64_t data_bytes = 4;
  Errc code = Errc::corrupt;
};

template <typename Read>
void expect_refusals(const std::vector<Refusal>& refusals, Read read) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.json.substr(0, 200));
    const std::string message = expect_error(refusal.code, {}, [&] { read(refusal); });
    for (const std::string& words : refusal.words) {
      EXPECT_NE(message.find(words), std::string::npos)
          << "'" << words << "' isn't in: " << message;
    }
    EXPECT_LT(message.size(), 700U);
  }
}

void expect_header_refusals(const std::vector<Refusal>& refusals) {
  expect_refusals(refusals, [](const Refusal& r) { read_json(r.json, r.data_bytes); });
}

/// Returns the JSON of a header with one tensor "t" that has these fields.
std::string of_fields(const std::string& fields) { return R"({"t":{)" + fields + "}}"; }
/// Returns the JSON of a header with f32 scalars of these names at these offsets.
std::string scalars(std::initializer_list<std::tuple<std::string, int, int>> places) {
  std::string json = "{";
  for (const auto& [name, begin, end] : places) {
    json += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})",
                        json.size() > 1 ? "," : "", name, (end - begin) / 4, begin, end);
  }
  return json + "}";
}

TEST(Safetensors, RefusesWhatIsNotJson) {
  const std::string sample = scalars({{"t", 0, 4}});
  expect_header_refusals({
      {"", {"doesn't begin with '{'"}},
      {" " + sample, {"doesn't begin with '{'"}},
      {"\xef\xbb\xbf" + sample, {"doesn't begin with '{'"}},
      {"[]", {"doesn't begin with '{'"}},
      {"{", {"invalid JSON at byte"}},
      {sample + "x", {"invalid JSON at byte"}},
      {sample + sample, {"invalid JSON at byte"}},
      {sample + "\0"s, {"is zero, which JSON can't have"}},
      {sample + "\0 junk }"s, {"is zero, which JSON can't have"}},
      {"{\"a\xff\":{}}", {"invalid JSON at byte", "UTF-8"}},
      {R"({"\ud800":{}})", {"invalid JSON at byte", "surrogate"}},
      {R"({"a":1e999})", {"invalid JSON at byte"}},
      {"{/**/}", {"invalid JSON at byte"}},
      {R"({"a":)" + std::string(1'000'000, 'x'), {"invalid JSON at byte 6 of 1000005"}},
      {"{\"" + std::string(1'000'000, 'x'), {"invalid JSON at byte", "missing closing quote"}},
  });
}

TEST(Safetensors, RefusesAnotherForm) {
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += R"({"a":)";
  expect_header_refusals({
      {nested, {"tensor \"a\": has the field \"a\""}},
      {R"({"t":3})", {"\"t\": found 3; expected an object"}},
      {R"({"t":null})", {"\"t\": found null; expected an object"}},
      {R"({"t":true})", {"\"t\": found true; expected an object"}},
      {R"({"t":"x"})", {"\"t\": found \"x\"; expected an object"}},
      {R"({"t":[]})", {"\"t\": found an array; expected an object"}},
      {R"({"__metadata__":null})", {"\"__metadata__\": found null; expected an object"}},
      {R"({"__metadata__":{"k":3}})", {"__metadata__, key \"k\": found 3; expected a string"}},
      {R"({"__metadata__":{"k":{}}})", {"key \"k\": found an object; expected a string"}},
      {R"({"__metadata__":{"k":[]}})", {"key \"k\": found an array; expected a string"}},
      {R"({"__metadata__":{"k":"a","k":"b"}})", {"__metadata__ has the key \"k\" twice"}},
      {R"({"__metadata__":{},"__metadata__":{}})",
       {"the header has the key \"__metadata__\" twice"}},
      {scalars({{"t", 0, 4}, {"t", 0, 4}}), {"the header has the key \"t\" twice"}},
      {scalars({{"", 0, 4}}), {"a tensor's name is empty"}},
      {"{\"" + std::string(1'000, 'n') + "\":3}", {"nnn\"...: found 3"}},
  });
}

TEST(Safetensors, RefusesOtherFieldsOfATensor) {
  const std::string shape = R"(,"shape":[],"data_offsets":[0,4])";
  expect_header_refusals({
      {of_fields(R"("strides":[1])"), {"has the field \"strides\"", "dtype, shape, data_offsets"}},
      {of_fields(R"("dtype":"F32","dtype":"F32")" + shape),
       {"tensor \"t\" has the key \"dtype\" twice"}},
      {of_fields(R"("shape":[],"dtype":"F32")" + shape),
       {"tensor \"t\" has the key \"shape\" twice"}},
      {of_fields(""), {"tensor \"t\": has no field dtype"}},
      {of_fields(R"("dtype":"F32","data_offsets":[0,4])"), {"has no field shape"}},
      {of_fields(R"("dtype":"F32","shape":[])"), {"has no field data_offsets"}},
      {of_fields(R"("dtype":32)" + shape),
       {"tensor \"t\", field dtype: found 32; expected a string"}},
      {of_fields(R"("dtype":["F32"])" + shape), {"field dtype: found an array; expected a string"}},
      {of_fields(R"("dtype":{})" + shape), {"field dtype: found an object; expected a string"}},
      {of_fields(R"("dtype":"")" + shape), {"field dtype: found an empty text"}},
  });
}

std::string ones(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += ",1";
  return text;
}

/// Reading a tensor of an unknown dtype fails, but all other tensors can be read.
TEST(Safetensors, HasTensorsOfUnknownDTypesAndManyDims) {
  const std::string first = R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]},)";
  const std::string second =
      R"("b":{"dtype":"F32","shape":[1)" + ones(8) + R"(],"data_offsets":[3,7]},)";
  const std::string third = R"("c":{"dtype":"F32","shape":[1],"data_offsets":[7,11]}})";
  const SafetensorsHeader header = read_json(first + second + third, 11);
  ASSERT_EQ(header.tensors.size(), 3U);
  EXPECT_EQ(header.tensors[0].dtype, "F4");
  EXPECT_EQ(header.tensors[0].sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[1].sizes.size(), 9U);
  EXPECT_EQ(header.tensors[2].dtype, "F32");
}

TEST(Safetensors, RefusesShapesThatAreNone) {
  const auto of_shape = [](const std::string& shape) {
    return of_fields(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4])");
  };
  const std::string expected = "expected an array of sizes, integers from 0 to 2^53";
  expect_header_refusals({
      {of_shape("1"), {"tensor \"t\", field shape: found 1; " + expected}},
      {of_shape("\"1\""), {"found \"1\"; " + expected}},
      {of_shape("{}"), {"found an object; " + expected}},
      {of_shape("[[1]]"), {"found an array; " + expected}},
      {of_shape("[-1]"), {"found -1; " + expected}},
      {of_shape("[-0]"), {"found -0; " + expected}},
      {of_shape("[1.0]"), {"found 1.0; " + expected}},
      {of_shape("[1e3]"), {"found 1e3; " + expected}},
      {of_shape("[\"1\"]"), {"found \"1\"; " + expected}},
      {of_shape("[null]"), {"found null; " + expected}},
      {of_shape("[false]"), {"found false; " + expected}},
      {of_shape("[9223372036854775808]"), {"found 9223372036854775808; " + expected}},
      {of_shape("[18446744073709551616]"), {"found 18446744073709551616; " + expected}},
      {of_shape("[1" + ones(64) + "]"), {"tensor \"t\": its shape has more than 64 dims"}},
      {of_shape("[9007199254740993]"), {"F32 of shape [9007199254740993] has 36028797018963972"}},
      {of_shape("[4294967296,4294967296]"), {"has more than 2^64"}},
      {of_shape("[9223372036854775807,9223372036854775807,4]"), {"has more than 2^64"}},
      {of_shape("[0,4294967296,4294967296]"), {"has 0"}},
  });
}

TEST(Safetensors, RefusesOffsetsThatAreNone) {
  const auto of_offsets = [](const std::string& offsets) {
    return of_fields(R"("dtype":"F32","shape":[1],"data_offsets":)" + offsets);
  };
  const std::string expected = "expected an array of two integers from 0, begin and end";
  expect_header_refusals({
      {of_offsets("4"), {"tensor \"t\", field data_offsets: found 4; " + expected}},
      {of_offsets("[]"), {"found its end; " + expected}},
      {of_offsets("[0]"), {"found its end; " + expected}},
      {of_offsets("[0,4,8]"), {"found 8; " + expected}},
      {of_offsets("[0,-4]"), {"found -4; " + expected}},
      {of_offsets("[0,4.0]"), {"found 4.0; " + expected}},
      {of_offsets("[4,0]"), {"data_offsets [4, 0) aren't within the 4 bytes of data"}},
      {of_offsets("[0,5]"), {"data_offsets [0, 5) aren't within the 4 bytes", "cut off"}},
      {of_offsets("[18446744073709551612,18446744073709551615]"), {"aren't within the 4 bytes"}},
      {of_offsets("[0,3]"), {"data_offsets [0, 3) have 3 bytes; F32 of shape [1] has 4"}},
      {of_offsets("[0,8]"), {"data_offsets [0, 8) have 8 bytes; F32 of shape [1] has 4"}, 8},
  });
}

TEST(Safetensors, RefusesTensorsThatDoNotCoverTheData) {
  expect_header_refusals({
      {scalars({{"a", 0, 8}, {"b", 4, 12}}),
       {"tensor \"b\" begins", "where tensor \"a\" ends"},
       12},
      {scalars({{"a", 0, 4}, {"b", 0, 4}}), {"without overlaps"}, 4},
      {scalars({{"a", 0, 8}, {"b", 4, 4}}), {"tensor \"b\" begins", "without overlaps"}, 8},
      {scalars({{"a", 8, 12}, {"b", 0, 4}}),
       {"before tensor \"a\", belong to no tensor", "gaps"},
       12},
      {scalars({{"a", 4, 8}}), {"before tensor \"a\", belong to no tensor"}, 8},
      {scalars({{"a", 0, 4}}), {"bytes [66, 67) at the end of the file belong to no tensor"}, 5},
      {"{}", {"bytes [10, 11) at the end of the file"}, 1},
  });
}

TEST(Safetensors, WritesExactlyThis) {
  const SafetensorsLayout layout = write_safetensors_header(
      {{"b", {DType::bf16, {3}}}, {"a", {DType::f32, {2, 1}}}}, {{"k", "v"}});
  std::string json =
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})";
  json.resize(4088, ' ');
  EXPECT_EQ(as_text(layout.header), with_length(json));
  EXPECT_EQ(layout.begins, (std::vector<std::uint64_t>{4104, 4096}));
  EXPECT_EQ(layout.file_bytes, 4110U);
}

TEST(Safetensors, ReadsWhatWasWritten) {
  std::vector<NamedType> tensors{{"z", {DType::f64, {2}}},
                                 {"y \"\\\n\x01 é字", {DType::pred, {5}}},
                                 {"x", {DType::i32, {}}},
                                 {"w", {DType::u32, {0, 9}}},
                                 {"v", {DType::i64, {1, 1}}},
                                 {"u", {DType::bf16, {3, 1, 1, 1, 1, 1}}},
                                 {std::string(1, '\0'), {DType::f32, {4}}}};
  for (int i = 0; i < 100; ++i) tensors.push_back({fmt::format("t{}", i), {DType::f32, {i}}});
  const std::map<std::string, std::string> metadata{{"", ""}, {"\"é\"", std::string(5000, '\\')}};
  const SafetensorsLayout layout = write_safetensors_header(tensors, metadata);
  const SafetensorsHeader header = read_safetensors_header(layout.header, layout.file_bytes);

  EXPECT_EQ(header.metadata, metadata);
  EXPECT_EQ(header.data_begin, layout.header.size());
  EXPECT_EQ(header.data_begin % kSafetensorsAlignment, 0U);
  ASSERT_EQ(header.tensors.size(), tensors.size());
  ASSERT_EQ(layout.begins.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, type] = tensors[i];
    SCOPED_TRACE(name);
    const auto entry = std::ranges::find(header.tensors, name, &SafetensorsEntry::name);
    ASSERT_NE(entry, header.tensors.end());
    EXPECT_EQ((TensorType{dtype_of(entry->dtype).value(), Shape(entry->sizes)}), type);
    EXPECT_EQ(entry->begin, layout.begins[i]);
    EXPECT_EQ(entry->begin % static_cast<std::uint64_t>(byte_size(type.dtype)), 0U);
  }
}

TEST(Safetensors, WritesAFileWithoutTensors) {
  const SafetensorsLayout layout = write_safetensors_header({}, {});
  EXPECT_EQ(layout.file_bytes, kSafetensorsAlignment);
  EXPECT_TRUE(read_safetensors_header(layout.header, layout.file_bytes).tensors.empty());
}

TEST(Safetensors, RefusesToWriteWhatItWouldNotRead) {
  const TensorType type{DType::f32, {2}};
  struct Case {
    std::vector<NamedType> tensors;
    std::map<std::string, std::string> metadata;
    std::string_view words;
  };
  const TensorType large{DType::f64, {std::int64_t{1} << 53}};
  std::vector<NamedType> too_many;
  for (int i = 0; i < 65; ++i) too_many.push_back({fmt::format("t{}", i), large});
  for (const Case& c : {Case{{{"", type}}, {}, "no tensor can have the name \"\""},
                        Case{{{"__metadata__", type}}, {}, "have the name \"__metadata__\""},
                        Case{{{"a", type}, {"a", type}}, {}, "two tensors have the name \"a\""},
                        Case{{{"a\xff", type}}, {}, "\"a\\xff\" isn't UTF-8"},
                        Case{{{"a", type}}, {{"\xc3", ""}}, "\"\\xc3\" isn't UTF-8"},
                        Case{{{"a", type}}, {{"k", "\xed\xa0\x80"}}, "isn't UTF-8"},
                        Case{too_many, {}, "have more than 2^62 bytes"},
                        Case{{}, {{"k", std::string(100'000'000, 'v')}}, "at most 100000000"}}) {
    SCOPED_TRACE(c.words);
    expect_error(Errc::invalid_argument, {c.words},
                 [&] { write_safetensors_header(c.tensors, c.metadata); });
  }
}

TEST(SafetensorsIndex, SaysTheFileOfEachTensor) {
  const std::map<std::string, std::string> expected{
      {"a", "model-1.safetensors"}, {"b é", "model 2.safetensors"}, {"__metadata__", "..."}};
  EXPECT_EQ(read_safetensors_index(bytes_of(R"({
  "metadata": {"total_size": 3, "x": "y", "share": 0.5, "low": -1, "tied": true, "none": null},
  "weight_map": {
    "a": "model-1.safetensors",
    "b \u00e9": "model 2.safetensors",
    "__metadata__": "..."
  }
}
)")),
            expected);
  EXPECT_TRUE(read_safetensors_index(bytes_of(R"({"weight_map":{}})")).empty());
}

TEST(SafetensorsIndex, RefusesAnotherForm) {
  const auto of_file = [](const std::string& file) {
    return R"({"weight_map":{"a":)" + file + "}}";
  };
  const std::string expected = "expected the plain name of a file";
  const std::string scalar = "expected a string, a number, true, false or null";
  expect_refusals(
      {
          {"", {"safetensors index: invalid JSON at byte"}},
          {"{\"weight_map\":{}}\0"s, {"is zero"}},
          {"{\"weight_map\":{}}x", {"invalid JSON"}},
          {"[]", {"the whole: found an array; expected an object"}},
          {"3", {"the whole: found 3; expected an object"}},
          {"{}", {"has no weight_map"}},
          {R"({"metadata":{}})", {"has no weight_map"}},
          {R"({"weights":{}})", {"has the key \"weights\"; expected only metadata and weight_map"}},
          {R"({"weight_map":{},"weight_map":{}})", {"the index has the key \"weight_map\" twice"}},
          {R"({"metadata":{},"metadata":{}})", {"the index has the key \"metadata\" twice"}},
          {R"({"metadata":{"k":1,"k":2}})", {"metadata has the key \"k\" twice"}},
          {R"({"metadata":{"k":{}}})", {"metadata, key \"k\": found an object; " + scalar}},
          {R"({"metadata":{"k":[]}})", {"metadata, key \"k\": found an array; " + scalar}},
          {R"({"metadata":null})", {"metadata: found null; expected an object"}},
          {R"({"weight_map":"x"})", {"weight_map: found \"x\"; expected an object"}},
          {R"({"weight_map":[]})", {"weight_map: found an array; expected an object"}},
          {R"({"weight_map":{"a":"f","a":"f"}})", {"weight_map has the key \"a\" twice"}},
          {R"({"weight_map":{"":"f"}})", {"a tensor's name is empty"}},
          {of_file("3"), {"tensor \"a\": found 3; " + expected}},
          {of_file("-3"), {"tensor \"a\": found -3; " + expected}},
          {of_file("0.5"), {"tensor \"a\": found 0.5; " + expected}},
          {of_file("true"), {"tensor \"a\": found true; " + expected}},
          {of_file("null"), {"tensor \"a\": found null; " + expected}},
          {of_file("{}"), {"tensor \"a\": found an object; " + expected}},
          {of_file("[]"), {"tensor \"a\": found an array; " + expected}},
          {of_file(R"("")"), {"tensor \"a\": found \"\"; " + expected}},
          {of_file(R"(".")"), {"found \".\"; " + expected}},
          {of_file(R"("..")"), {"found \"..\"; " + expected}},
          {of_file(R"("/etc/passwd")"), {"found \"/etc/passwd\"; " + expected}},
          {of_file(R"("a/b")"), {"found \"a/b\"; " + expected}},
          {of_file(R"("a\u0000b")"), {"found \"a\\x00b\"; " + expected}},
      },
      [](const Refusal& refusal) { read_safetensors_index(bytes_of(refusal.json)); });
}

}  // namespace
}  // namespace weft::safetensors_test
