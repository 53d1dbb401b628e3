#include <weft/data/files.hpp>
#include <weft/data/packing.hpp>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

#include <weft/data/text_files.hpp>

#include "data/formats/npy.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::data_files_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

std::string golden(const std::string& name) {
  return testing::golden_path("data/" + name).string();
}

template <typename T>
std::vector<T> read(const Dataset& dataset, std::int64_t index, std::string_view field) {
  const ItemBuffer item = read_item(dataset, {.index = index});
  const auto elements = item.view().get<T>(field);
  return {elements.begin(), elements.end()};
}

class DataFiles : public ::testing::Test {
 protected:
  DataFiles() { fs::create_directories(folder_); }
  ~DataFiles() override { fs::remove_all(folder_); }

  std::string file(const std::string& bytes, const std::string& name = "file") const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  /// Writes an .npy file with these elements in one dim, and returns its path.
  template <typename T>
  std::string npy(const std::string& descr, const std::vector<T>& elements) const {
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                                   descr, elements.size());
    const std::string data(reinterpret_cast<const char*>(elements.data()),
                           elements.size() * sizeof(T));
    return file(std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(text.size()) + '\0' + text +
                data);
  }

 private:
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("weft-data-{}", ::getpid());
};

TEST_F(DataFiles, ColumnsOfOtherFormatsAreRefusedWithACommandThatConvertsThem) {
  for (const std::string name : {"a.parquet", "a.arrow", "a.feather"}) {
    const std::string path = file("PAR1", name);
    for (const auto& open : std::vector<std::function<void()>>{
             [&] { (void)csv_file(path, {}); }, [&] { (void)npy_file(path); },
             [&] { (void)token_file(path); }, [&] { (void)idx_file(path); },
             [&] { (void)json_lines(path, {}); }}) {
      expect_error(Errc::version,
                   {path, "convert it to JSON lines", "json_lines()", "pandas.read_"}, open);
    }
  }
}

TEST_F(DataFiles, NpyHasRows) {
  const DatasetPtr dataset = npy_file(golden("rows.npy"), {.name = "pixels"});
  EXPECT_EQ(dataset->size(), 4);
  EXPECT_EQ(dataset->name(), golden("rows.npy"));
  EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"pixels", {DType::f32, {2, 3}}}}));
  EXPECT_EQ(read<float>(*dataset, 2, "pixels"), (std::vector<float>{3, 3.25, 3.5, 3.75, 4, 4.25}));
  const DatasetPtr scaled =
      npy_file(golden("rows.npy"), {.dtype = DType::bf16, .scale = 4, .offset = 1});
  EXPECT_EQ(static_cast<float>(read<Bf16>(*scaled, 3, "x")[5]), 24.0F);
}

TEST_F(DataFiles, NpyOfFortransOrderIsRefused) {
  expect_error(Errc::invalid_argument, {"fortran.npy", "np.ascontiguousarray(array)"},
               [] { (void)npy_file(golden("fortran.npy")); });
}

TEST_F(DataFiles, NumbersAreWidened) {
  const auto as_i32 = [&](const std::string& path) {
    return read<std::int32_t>(*npy_file(path), 1, "x")[0];
  };
  EXPECT_EQ(as_i32(npy<std::int16_t>("<i2", {0, -300})), -300);
  EXPECT_EQ(as_i32(npy<std::uint16_t>("<u2", {0, 65535})), 65535);
  EXPECT_EQ(as_i32(npy<std::uint32_t>(">i4", {0, 0xfeffffff})), -2);
  EXPECT_EQ(
      read<std::uint32_t>(*npy_file(npy<std::uint32_t>("<u4", {1, 4'000'000'000})), 1, "x")[0],
      4'000'000'000);
  EXPECT_EQ(read<std::int64_t>(*npy_file(npy<std::int64_t>("<i8", {1, -5})), 1, "x")[0], -5);
  EXPECT_EQ(read<double>(*npy_file(npy<double>("<f8", {1, 0.1})), 1, "x")[0], 0.1);
  EXPECT_EQ(read<float>(*npy_file(npy<double>("<f8", {1, 0.1}), {.dtype = DType::f32}), 1, "x")[0],
            0.1F);
  EXPECT_EQ(read<bool>(*npy_file(npy<std::uint8_t>("|b1", {1, 0})), 0, "x")[0], true);
  EXPECT_EQ(
      read<float>(*npy_file(npy<std::uint8_t>("|b1", {1, 0}), {.dtype = DType::f32}), 0, "x")[0],
      1);
  EXPECT_EQ(read<std::int64_t>(*npy_file(npy<std::uint64_t>("<u8", {1, 1ULL << 62U})), 1, "x")[0],
            std::int64_t{1} << 62);
  expect_error(Errc::corrupt, {"item 1", "field 'x': element 0 is 9223372036854775808"}, [&] {
    const DatasetPtr large = npy_file(npy<std::uint64_t>("<u8", {1, 1ULL << 63U}));
    (void)read<std::int64_t>(*large, 1, "x");
  });
  expect_error(Errc::corrupt, {"element 0 is a bool of value 2"},
               [&] { (void)read<bool>(*npy_file(npy<std::uint8_t>("|b1", {2})), 0, "x"); });
}

TEST_F(DataFiles, NumbersOfFewBitsStayOrAreWidened) {
  const std::string bytes = npy<std::uint8_t>("|u1", {0, 200});
  const DatasetPtr u8 = npy_file(bytes);
  EXPECT_EQ(u8->fields(), (std::vector<Field>{{"x", {DType::u8, {}}}}));
  EXPECT_EQ(read<std::uint8_t>(*u8, 1, "x")[0], 200);
  EXPECT_EQ(read<std::int32_t>(*npy_file(bytes, {.dtype = DType::i32}), 1, "x")[0], 200);
  EXPECT_EQ(read<std::uint32_t>(*npy_file(bytes, {.dtype = DType::u32}), 1, "x")[0], 200);
  EXPECT_EQ(static_cast<float>(
                read<F16>(*npy_file(bytes, {.dtype = DType::f16, .scale = 0.5}), 1, "x")[0]),
            100);
  expect_error(Errc::invalid_argument, {"dtype = i8", "elements 'u1'"},
               [&] { (void)npy_file(bytes, {.dtype = DType::i8}); });
  const std::string small = npy<std::int8_t>("|i1", {0, -3});  // overwrites the first file
  EXPECT_EQ(read<std::int8_t>(*npy_file(small), 1, "x")[0], -3);
  EXPECT_EQ(read<std::int64_t>(*npy_file(small, {.dtype = DType::i64}), 1, "x")[0], -3);
  expect_error(Errc::invalid_argument, {"dtype = u8", "elements 'i1'"},
               [&] { (void)npy_file(small, {.dtype = DType::u8}); });
}

TEST_F(DataFiles, HalvesStayOrBecomeFloats) {
  const DatasetPtr dataset =
      npy_file(npy<std::uint16_t>("<f2", {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x8000}),
               {.dtype = DType::f32});
  const std::vector<float> expected{1, -2, 65504, 0x1p-24F, INFINITY, -0.0F};
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(read<float>(*dataset, i, "x")[0], expected[static_cast<std::size_t>(i)]);
  }
  const std::string nan = npy<std::uint16_t>("<f2", {0x7e00});
  EXPECT_TRUE(std::isnan(read<float>(*npy_file(nan, {.dtype = DType::f32}), 0, "x")[0]));
  EXPECT_EQ(read<F16>(*npy_file(nan), 0, "x")[0].bits, 0x7e00);
}

TEST_F(DataFiles, OtherConversionsAreRefused) {
  const auto refused = [](const std::string& path, const FileField& field, std::string_view words) {
    expect_error(Errc::invalid_argument, {words}, [&] { (void)npy_file(path, field); });
  };
  const std::string floats = npy<float>("<f4", {1});
  refused(floats, {.dtype = DType::i32}, "field 'x': dtype = i32: the file has elements 'f4'");
  refused(floats, {.scale = INFINITY}, "expected finite numbers");
  const std::string longs = npy<std::int64_t>("<i8", {1});
  refused(longs, {.dtype = DType::i32}, "the file has elements 'i8': expected i64");
  refused(longs, {.scale = 2}, "only floating fields are scaled");
  refused(longs, {.dtype = DType::pred}, "dtype = pred");
}

TEST_F(DataFiles, RowsOfManyPiecesAreConverted) {
  // Each item has 50,000 elements, more than one read() returns.
  std::string bytes("\0\0\x0b\2\0\0\0\2\0\0\xc3\x50", 12);
  for (int i = 0; i < 100'000; ++i) {
    bytes += static_cast<char>(i / 256 % 128);
    bytes += static_cast<char>(i % 256);
  }
  const DatasetPtr dataset = idx_file(file(bytes), {.dtype = DType::f64, .scale = 0.5});
  const std::vector<double> row = read<double>(*dataset, 1, "x");
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_EQ(row[static_cast<std::size_t>(i)], 0.5 * ((i + 50'000) % 32'768)) << i;
  }
}

TEST_F(DataFiles, NpzHasItsArrays) {
  for (const std::string name : {"stored.npz", "deflated.npz"}) {
    const DatasetPtr all = npz_file(golden(name));
    EXPECT_EQ(all->fields(), (std::vector<Field>{{"x", {DType::f32, {2, 3}}},
                                                 {"y", {DType::i64, {}}},
                                                 {"ok", {DType::pred, {2}}},
                                                 {"short", {DType::i32, {}}}}));
    EXPECT_EQ(all->size(), 4);
    EXPECT_EQ(read<float>(*all, 3, "x")[0], 4.5F);
    EXPECT_EQ(read<std::int64_t>(*all, 3, "y")[0], std::int64_t{1} << 40);
    EXPECT_EQ(read<bool>(*all, 1, "ok"), (std::vector<bool>{true, false}));
    EXPECT_EQ(read<std::int32_t>(*all, 0, "short")[0], -2);
    const DatasetPtr some =
        npz_file(golden(name), {.fields = {{.name = "short", .dtype = DType::f32, .scale = 0.5}}});
    EXPECT_EQ(some->fields(), (std::vector<Field>{{"short", {DType::f32, {}}}}));
    EXPECT_EQ(read<float>(*some, 3, "short")[0], 150);
    expect_error(Errc::invalid_argument,
                 {name, "has no array 'z'; its arrays are 'x', 'y', 'ok', 'short'"},
                 [&] { (void)npz_file(golden(name), {.fields = {{.name = "z"}}}); });
  }
  expect_error(Errc::no_space, {"ratio.npz", "'big' has 4800128 bytes", "leaves only 1000"},
               [] { (void)npz_file(golden("ratio.npz"), {.memory_bytes_max = 1000}); });
}

TEST_F(DataFiles, IdxIsMnists) {
  const DatasetPtr images =
      idx_file(golden("images-idx3-ubyte"), {.dtype = DType::f32, .scale = 1.0 / 255});
  EXPECT_EQ(images->fields(), (std::vector<Field>{{"x", {DType::f32, {2, 2}}}}));
  EXPECT_EQ(read<float>(*images, 0, "x"), (std::vector<float>{0, 0.2F, 0.4F, 1}));
  const DatasetPtr bytes = idx_file(golden("images-idx3-ubyte"), {.dtype = DType::u8});
  EXPECT_EQ(bytes->fields(), (std::vector<Field>{{"x", {DType::u8, {2, 2}}}}));
  EXPECT_EQ(read<std::uint8_t>(*bytes, 0, "x"), (std::vector<std::uint8_t>{0, 51, 102, 255}));
  const DatasetPtr labels = idx_file(golden("labels-idx1-ubyte"), {.name = "y"});
  EXPECT_EQ(labels->size(), 3);
  EXPECT_EQ(read<std::int32_t>(*labels, 2, "y")[0], 9);
  EXPECT_EQ(read<float>(*idx_file(golden("floats-idx2")), 1, "x"), (std::vector<float>{0, 1e10F}));
}

TEST_F(DataFiles, CsvHasColumnsByNameAndNumber) {
  const DatasetPtr dataset =
      csv_file(golden("table.csv"),
               {.fields = {{.name = "x", .columns = {"a", "b \"x\""}, .scale = 2, .missing = -1},
                           {.name = "y", .dtype = DType::i32, .columns = {"label"}},
                           {.name = "id", .dtype = DType::i64, .first_column = 0}}});
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->fields(),
            (std::vector<Field>{
                {"x", {DType::f32, {2}}}, {"y", {DType::i32, {}}}, {"id", {DType::i64, {}}}}));
  EXPECT_EQ(read<float>(*dataset, 0, "x"), (std::vector<float>{1, -2.5}));
  EXPECT_EQ(read<float>(*dataset, 2, "x"), (std::vector<float>{-1, 14}));
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "y")[0], 3);
  EXPECT_EQ(read<std::int64_t>(*dataset, 2, "id")[0], 3);
}

TEST_F(DataFiles, CsvParsesEveryDtype) {
  const std::string path =
      file("-7, 4000000000,9007199254740993,+1.5e3 ,0.1,1, nan,-128,255,0.25\r\n");
  const auto field = [](const std::string& name, DType dtype, std::int64_t column) {
    return CsvField{.name = name, .dtype = dtype, .first_column = column};
  };
  const DatasetPtr dataset =
      csv_file(path, {.fields = {field("i32", DType::i32, 0), field("u32", DType::u32, 1),
                                 field("i64", DType::i64, 2), field("bf16", DType::bf16, 3),
                                 field("f64", DType::f64, 4), field("pred", DType::pred, 5),
                                 field("nan", DType::f32, 6), field("i8", DType::i8, 7),
                                 field("u8", DType::u8, 8), field("f16", DType::f16, 9)},
                      .header = false});
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "i32")[0], -7);
  EXPECT_EQ(read<std::uint32_t>(*dataset, 0, "u32")[0], 4'000'000'000);
  EXPECT_EQ(read<std::int64_t>(*dataset, 0, "i64")[0], 9007199254740993);
  EXPECT_EQ(static_cast<float>(read<Bf16>(*dataset, 0, "bf16")[0]), 1504);
  EXPECT_EQ(read<double>(*dataset, 0, "f64")[0], 0.1);
  EXPECT_EQ(read<bool>(*dataset, 0, "pred")[0], true);
  EXPECT_TRUE(std::isnan(read<float>(*dataset, 0, "nan")[0]));
  EXPECT_EQ(read<std::int8_t>(*dataset, 0, "i8")[0], -128);
  EXPECT_EQ(read<std::uint8_t>(*dataset, 0, "u8")[0], 255);
  EXPECT_EQ(static_cast<float>(read<F16>(*dataset, 0, "f16")[0]), 0.25F);
}

TEST_F(DataFiles, CsvSaysWhichLineAndColumnIsWrong) {
  const std::string path = file("a,b\n1,2\n\"3\",\"x\ny\"\n5\n6,\n");
  const DatasetPtr dataset =
      csv_file(path, {.fields = {{.name = "b", .dtype = DType::i32, .columns = {"b"}}}});
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "b")[0], 2);
  const auto refused = [&](std::int64_t item, std::initializer_list<std::string_view> words) {
    expect_error(Errc::corrupt, words, [&] { (void)read<std::int32_t>(*dataset, item, "b"); });
  };
  refused(
      1, {path, "item 1", "line 3, column 1: \"x\\ny\" isn't a valid i32, the dtype of field 'b'"});
  refused(2, {"line 5: has 1 cells; field 'b' needs the cell in column 1"});
  refused(3, {"line 6, column 1: \"\" isn't a valid i32", ".missing"});
  for (const std::string cell : {"1.5", "2147483648", "1 2", "0x1", "", "+-1", "--1"}) {
    const DatasetPtr one = csv_file(
        file(cell + ",0\n"), {.fields = {{.name = "x", .dtype = DType::i32}}, .header = false});
    expect_error(Errc::corrupt, {"line 1, column 0"},
                 [&] { (void)read<std::int32_t>(*one, 0, "x"); });
  }
}

TEST_F(DataFiles, CsvRefusesFieldsThatDontFit) {
  const auto refused = [&](const CsvField& field, std::string_view words, bool header = true) {
    const std::string path = file("a,b\n1,2\n");
    expect_error(Errc::invalid_argument, {words},
                 [&] { (void)csv_file(path, {.fields = {field}, .header = header}); });
  };
  refused({.columns = {"c"}}, "there is no column 'c'; the header has \"a, b\"");
  refused({.columns = {"a", "b"}, .item_shape = {3}},
          "item_shape (3) has 3 elements, but the number of columns is 2");
  refused({.item_shape = {0}}, "the number of columns is 0");
  refused({.first_column = -1}, "first_column is less than 0");
  refused({.dtype = DType::i32, .scale = 2}, "only floating fields are scaled");
  refused({.dtype = DType::i8, .missing = 200},
          "missing = 200: expected a number that i8 can represent");
  refused({.dtype = DType::i32, .missing = 0.5},
          "missing = 0.5: expected a number that i32 can represent");
  expect_error(Errc::invalid_argument, {"has only numbers in its first line", ".header = false"},
               [&] { (void)csv_file(file("1,2\n"), {.fields = {{}}}); });
  expect_error(Errc::corrupt, {"is empty: expected a header"},
               [&] { (void)csv_file(file(""), {.fields = {{}}}); });
  expect_error(Errc::invalid_argument, {"has no fields"},
               [&] { (void)csv_file(file("a\n1\n"), {}); });
  expect_error(Errc::invalid_argument, {"separator"},
               [&] { (void)csv_file(file("a\n1\n"), {.fields = {{}}, .separator = '"'}); });
}

using Tokens = std::vector<std::int32_t>;

TEST_F(DataFiles, TokensAreWindowsWithTheNextToken) {
  const DatasetPtr dataset = token_file(golden("tokens-u16"), {.length = 4});
  EXPECT_EQ(dataset->fields(),
            (std::vector<Field>{{"tokens", {DType::i32, {4}}}, {"targets", {DType::i32, {4}}}}));
  ASSERT_EQ(dataset->size(), 2);  // two windows of 12 tokens; a third one would need a 13th token
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "tokens"), (Tokens{5, 6, 7, 0}));
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "targets"), (Tokens{6, 7, 0, 8}));
  EXPECT_EQ(read<std::int32_t>(*dataset, 1, "targets"), (Tokens{0, 0, 9, 10}));
  const DatasetPtr overlapping = token_file(golden("tokens-u16"), {.length = 4, .stride = 1});
  ASSERT_EQ(overlapping->size(), 8);
  EXPECT_EQ(read<std::int32_t>(*overlapping, 7, "targets"), (Tokens{10, 11, 12, 65535}));
  const DatasetPtr wide =
      token_file(golden("tokens-u32"), {.length = 4, .token_bytes = 4, .skip_bytes = 4});
  ASSERT_EQ(wide->size(), 1);
  EXPECT_EQ(read<std::int32_t>(*wide, 0, "tokens"), (Tokens{70000, 2, 3, 4}));
  EXPECT_EQ(read<std::int32_t>(*wide, 0, "targets"), (Tokens{2, 3, 4, 5}));
}

TEST_F(DataFiles, TokensOfADocumentStayTogether) {
  const std::int32_t none = kIgnoredToken;
  // The documents of this file are: 5 6 7 0 | 8 0 | 0 | 9 10 11 12 65535.
  const DatasetPtr dataset = token_file(golden("tokens-u16"), {.length = 2, .separator = 0});
  ASSERT_EQ(dataset->size(), 5);
  const std::vector<std::pair<Tokens, Tokens>> expected{{{5, 6}, {6, 7}},
                                                        {{7, 0}, {0, none}},
                                                        {{8, 0}, {0, none}},
                                                        {{9, 10}, {10, 11}},
                                                        {{11, 12}, {12, 65535}}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(read<std::int32_t>(*dataset, static_cast<std::int64_t>(i), "tokens"),
              expected[i].first);
    EXPECT_EQ(read<std::int32_t>(*dataset, static_cast<std::int64_t>(i), "targets"),
              expected[i].second);
  }
}

TEST_F(DataFiles, EachPairOfADocumentIsLearntOnce) {
  // There are documents of every length below 12, and windows of every length.
  std::vector<std::uint16_t> tokens;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::uint16_t length = 0; length < 12; ++length) {
    for (std::uint16_t i = 0; i <= length; ++i) {
      tokens.push_back(i == length ? 0 : static_cast<std::uint16_t>(100 * length + i + 1));
      if (i > 0) pairs.emplace_back(tokens[tokens.size() - 2], tokens.back());
    }
  }
  for (const bool ends_open : {false, true}) {
    if (ends_open) {
      tokens.insert(tokens.end(), {7, 8, 9});
      pairs.insert(pairs.end(), {{7, 8}, {8, 9}});
    }
    const std::string path =
        file({reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()});
    for (std::int64_t length = 1; length <= 12; ++length) {
      const DatasetPtr dataset = token_file(path, {.length = length, .separator = 0});
      std::vector<std::pair<std::int32_t, std::int32_t>> found;
      for (std::int64_t i = 0; i < dataset->size(); ++i) {
        const Tokens x = read<std::int32_t>(*dataset, i, "tokens");
        const Tokens y = read<std::int32_t>(*dataset, i, "targets");
        for (std::size_t j = 0; j < x.size(); ++j) {
          if (y[j] != kIgnoredToken) found.emplace_back(x[j], y[j]);
        }
      }
      EXPECT_EQ(found, pairs) << length;
    }
  }
}

TEST_F(DataFiles, DocumentsOfTokensArePacked) {
  const std::string path = file(std::string("\5\0\6\0\7\0\0\0\10\0\11\0", 12));
  const DatasetPtr dataset = token_file(path, {.length = 4, .separator = 0, .mask = "mask"});
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->fields().back(), (Field{"mask", {DType::pred, {4}}}));
  const DatasetPtr rows = pack_sequences(dataset, {.length = 7, .fill = {{"targets", -100}}});
  ASSERT_EQ(rows->size(), 1);
  EXPECT_EQ(read<std::int32_t>(*rows, 0, "tokens"), (Tokens{5, 6, 7, 0, 8, 9, 0}));
  EXPECT_EQ(read<std::int32_t>(*rows, 0, "targets"), (Tokens{6, 7, 0, -100, 9, -100, -100}));
  EXPECT_EQ(read<std::int32_t>(*rows, 0, "segment_ids"), (Tokens{1, 1, 1, 1, 2, 2, 0}));
  const DatasetPtr windows = token_file(path, {.length = 4, .mask = "all"});
  const ItemBuffer item = read_item(*windows, {});
  EXPECT_EQ(std::ranges::count(item.view().get<bool>("all"), true), 4);
}

TEST_F(DataFiles, TokensThatDontFitAreRefused) {
  const std::string path = golden("tokens-u16");
  const auto refused = [&](Errc code, const TokenOptions& options, std::string_view words) {
    expect_error(code, {path, words}, [&] { (void)token_file(path, options); });
  };
  refused(Errc::invalid_argument, {.length = 0}, "length = 0");
  refused(Errc::invalid_argument, {.token_bytes = 3}, "token_bytes = 3: expected 2 or 4");
  refused(Errc::invalid_argument, {.stride = -1}, "stride = -1");
  refused(Errc::invalid_argument, {.stride = 3, .separator = 0}, "stride = 3");
  refused(Errc::invalid_argument, {.separator = 65536}, "separator = 65536");
  refused(Errc::invalid_argument, {.length = 12}, "has 12 tokens, which are too few for a window");
  refused(Errc::corrupt, {.skip_bytes = 1}, "has 24 bytes: expected a header of 1 bytes");
  refused(Errc::corrupt, {.skip_bytes = 26}, "expected a header of 26 bytes");
  const DatasetPtr large = token_file(path, {.length = 1, .token_bytes = 4});
  expect_error(Errc::corrupt, {"token 5 is 4294901772, which doesn't fit in i32"},
               [&] { (void)read<std::int32_t>(*large, 4, "targets"); });
}

TEST_F(DataFiles, FilesThatArentThereOrShrinkAreErrors) {
  expect_error(Errc::not_found, {"can't open /nowhere/x.npy"},
               [] { (void)npy_file("/nowhere/x.npy"); });
  expect_error(Errc::invalid_argument, {"is a folder: expected a plain file"},
               [] { (void)idx_file(fs::temp_directory_path().string()); });
  expect_error(Errc::corrupt, {"labels-idx1-ubyte", "is it an npy file?"},
               [] { (void)npy_file(golden("labels-idx1-ubyte")); });
  const std::string path = npy<std::int32_t>("<i4", std::vector<std::int32_t>(5000, 1));
  const DatasetPtr dataset = npy_file(path);
  EXPECT_EQ(read<std::int32_t>(*dataset, 4999, "x")[0], 1);
  fs::resize_file(path, 4096);
  expect_error(Errc::io, {path, "item 4999", "ends at byte", "when it was opened"},
               [&] { (void)read<std::int32_t>(*dataset, 4999, "x"); });
}

TEST_F(DataFiles, AnyThreadReads) {
  const DatasetPtr dataset = token_file(golden("tokens-u16"), {.length = 2, .stride = 1});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < 2000; ++i) {
        const Tokens x = read<std::int32_t>(*dataset, i % 9, "tokens");
        const Tokens y = read<std::int32_t>(*dataset, i % 9, "targets");
        wrong += x[1] != y[0];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace weft::data_files_test
