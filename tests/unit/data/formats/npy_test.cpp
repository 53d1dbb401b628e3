#include "data/formats/npy.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/transport/format/damage.hpp"

namespace weft::npy_test {
namespace {

using namespace std::string_literals;
using testing::expect_error;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

NpyHeader read_file(std::span<const std::byte> file) { return read_npy_header(file, file.size()); }

/// Returns an .npy file of version 1.0 with this header and `data_bytes` bytes of data.
std::string npy(const std::string& header, std::size_t data_bytes = 0) {
  return "\x93NUMPY\x01\0"s + static_cast<char>(header.size() & 0xffU) +
         static_cast<char>(header.size() >> 8U) + header + std::string(data_bytes, '\0');
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

const std::string kSpaces(53, ' ');

// NumPy 1.24 wrote these files with np.lib.format.write_array().
const std::string kRowMajor =  // np.arange(6, dtype='<i4').reshape(2, 3)
    "\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"s + kSpaces +
    "     \n\000\000\000\000\001\000\000\000\002\000\000\000\003\000\000\000\004\000\000\000"s +
    "\005\000\000\000"s;
const std::string kFortranBig =  // np.asfortranarray(np.arange(6, dtype='>i2').reshape(2, 3))
    "\223NUMPY\001\000v\000{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }"s + kSpaces +
    "      \n\000\000\000\003\000\001\000\004\000\002\000\005"s;
const std::string kScalar =  // np.array(True)
    "\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': False, 'shape': (), }"s + kSpaces +
    "         \n\001"s;
const std::string kVersion2 =  // np.array([1.5, -2]), version=(2, 0)
    "\223NUMPY\002\000t\000\000\000{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"s +
    kSpaces + "     \n\000\000\000\000\000\000\370?\000\000\000\000\000\000\000\300"s;
const std::string kVersion3 =  // np.array([3], dtype='u1'), version=(3, 0)
    "\223NUMPY\003\000t\000\000\000{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"s +
    kSpaces + "     \n\003"s;

TEST(Npy, ReadsFilesOfNumPy) {
  EXPECT_EQ(read_file(bytes_of(kRowMajor)),
            (NpyHeader{"<i4", false, false, DType::i32, 4, {2, 3}, 128}));
  EXPECT_EQ(read_file(bytes_of(kFortranBig)), (NpyHeader{">i2", true, true, {}, 2, {2, 3}, 128}));
  EXPECT_EQ(read_file(bytes_of(kScalar)),
            (NpyHeader{"|b1", false, false, DType::pred, 1, {}, 128}));
  EXPECT_EQ(read_file(bytes_of(kVersion2)),
            (NpyHeader{"<f8", false, false, DType::f64, 8, {2}, 128}));
  EXPECT_EQ(read_file(bytes_of(kVersion3)),
            (NpyHeader{"|u1", false, false, DType::u8, 1, {1}, 128}));
}

TEST(Npy, ReadsTheHeaderWithoutTheData) {
  EXPECT_EQ(read_npy_header(bytes_of(kRowMajor).first(128), kRowMajor.size()),
            read_file(bytes_of(kRowMajor)));
}

TEST(Npy, WritesWhatNumPyWrites) {
  EXPECT_EQ(as_text(write_npy_header({DType::i32, {2, 3}})), kRowMajor.substr(0, 128));
  EXPECT_EQ(as_text(write_npy_header({DType::pred, {}})), kScalar.substr(0, 128));
}

TEST(Npy, ReadsWhatWasWritten) {
  const std::int64_t most = std::int64_t{1} << 53;
  for (const DType dtype : {DType::pred, DType::i32, DType::u32, DType::i64, DType::f32, DType::f64,
                            DType::f16, DType::i8, DType::u8}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{0}, Shape{4, 5}, Shape{1, 2, 3, 4, 5, 6},
                               Shape{0, most, 1, 1, 1, 1}, Shape{most, 1, 1, 1, 1, 0}}) {
      const TensorType type{dtype, shape};
      SCOPED_TRACE(type.to_string());
      const auto header = write_npy_header(type);
      EXPECT_EQ(header.size() % 64, 0U);
      const NpyHeader read =
          read_npy_header(header, header.size() + static_cast<std::uint64_t>(type.bytes()));
      EXPECT_EQ((TensorType{read.dtype.value(), read.shape}), type);
      EXPECT_EQ(read.data_begin, header.size());
      EXPECT_FALSE(read.fortran_order || read.big_endian);
    }
  }
}

TEST(Npy, RefusesToWriteBf16) {
  expect_error(Errc::invalid_argument, {"npy has no bf16; convert the tensor to f32"}, [] {
    write_npy_header({DType::bf16, {2}});
  });
}

TEST(Npy, KnowsTheTypes) {
  struct Case {
    std::string descr;
    std::int64_t element_bytes;
    std::optional<DType> dtype;
    bool big_endian = false;
  };
  for (const Case& c :
       {Case{"|b1", 1, DType::pred}, Case{"<i4", 4, DType::i32}, Case{"<u4", 4, DType::u32},
        Case{"<i8", 8, DType::i64}, Case{"<f4", 4, DType::f32}, Case{"<f8", 8, DType::f64},
        Case{"|u1", 1, DType::u8}, Case{"|i1", 1, DType::i8}, Case{"<i2", 2, {}},
        Case{"<u2", 2, {}}, Case{"<u8", 8, {}}, Case{"<f2", 2, DType::f16},
        Case{">i4", 4, DType::i32, true}, Case{">f8", 8, DType::f64, true},
        Case{">u2", 2, {}, true}, Case{"<b1", 1, DType::pred}, Case{">u1", 1, DType::u8}}) {
    SCOPED_TRACE(c.descr);
    const std::string file = npy(dict("'" + c.descr + "'", "False", "(3,)"),
                                 static_cast<std::size_t>(3 * c.element_bytes));
    const NpyHeader header = read_file(bytes_of(file));
    EXPECT_EQ(header.descr, c.descr);
    EXPECT_EQ(header.element_bytes, c.element_bytes);
    EXPECT_EQ(header.dtype, c.dtype);
    EXPECT_EQ(header.big_endian, c.big_endian);
  }
}

TEST(Npy, ReadsAnySpacingOrderAndQuotes) {
  for (const std::string header : {
           "{'descr':'<f4','fortran_order':True,'shape':(2,3)}",
           "{'shape': (2, 3), 'fortran_order': True, 'descr': '<f4'}   \n",
           "{\"descr\": \"<f4\", 'fortran_order': True, \"shape\": (2, 3), }\n",
           "  {\n 'descr' :\t'<f4' ,\r\n 'fortran_order'\f: True , 'shape' : ( 2 , 3 , ) , } \n\n",
       }) {
    SCOPED_TRACE(header);
    const std::string file = npy(header, 24);
    EXPECT_EQ(read_file(bytes_of(file)),
              (NpyHeader{"<f4", true, false, DType::f32, 4, {2, 3}, 10 + header.size()}));
  }
}

TEST(Npy, RefusesEveryTruncation) {
  for (const std::string& file : {kRowMajor, kFortranBig, kScalar, kVersion2, kVersion3}) {
    expect_truncations_refused(bytes_of(file), read_file);
  }
}

TEST(Npy, RefusesWhatIsNoNpyFile) {
  expect_error(Errc::corrupt, {"begins with \"\"", "is it an npy file?"},
               [] { read_file(bytes_of("")); });
  expect_error(Errc::corrupt, {"begins with \"PK\\x03\\x04ab\""},
               [] { read_file(bytes_of("PK\x03\x04"s + "abcdefgh")); });
  expect_error(Errc::corrupt, {"ends after 7 bytes"},
               [] { read_file(bytes_of(kRowMajor.substr(0, 7))); });
  expect_error(Errc::corrupt, {"ends after 11 bytes, within its length"},
               [] { read_file(bytes_of(kVersion2.substr(0, 11))); });
}

TEST(Npy, RefusesOtherVersions) {
  for (const auto& [version, words] :
       {std::pair("\0\0"s, "version 0.0"), std::pair("\1\1"s, "version 1.1"),
        std::pair("\4\0"s, "version 4.0"), std::pair("\xff\xff"s, "version 255.255")}) {
    std::string file = kRowMajor;
    file.replace(6, 2, version);
    expect_error(Errc::version, {words, "expected 1.0, 2.0 or 3.0"},
                 [&] { read_file(bytes_of(file)); });
  }
}

TEST(Npy, RefusesAHeaderThatIsTooLong) {
  const std::string text = dict("'|b1'", "False", "(0,)");
  const auto of_bytes = [&](std::size_t bytes) {
    return npy(text + std::string(bytes - 10 - text.size(), ' '));
  };
  EXPECT_EQ(read_file(bytes_of(of_bytes(65535))).data_begin, 65535U);
  EXPECT_EQ(read_file(bytes_of(of_bytes(kNpyHeaderBytesMax))).data_begin, kNpyHeaderBytesMax);
  expect_error(Errc::corrupt, {"has 65537 bytes; at most 65536"},
               [&] { read_file(bytes_of(of_bytes(kNpyHeaderBytesMax + 1))); });
  const std::string longest = "\223NUMPY\002\000\xff\xff\xff\xff"s;
  expect_error(Errc::corrupt, {"has 4294967307 bytes; at most 65536"},
               [&] { read_npy_header(bytes_of(longest), ~std::uint64_t{0}); });
}

TEST(Npy, RefusesAHeaderBeyondTheBytesOrTheFile) {
  expect_error(Errc::corrupt, {"has 128 bytes in a file of 127", "cut off"},
               [] { read_npy_header(bytes_of(kRowMajor).first(127), 127); });
  expect_error(Errc::invalid_argument, {"127 bytes were given to read; the header has 128"},
               [] { read_npy_header(bytes_of(kRowMajor).first(127), kRowMajor.size()); });
}

TEST(Npy, RefusesAFileOfAnotherSize) {
  expect_error(Errc::corrupt, {"23 bytes of data; \"<i4\" of shape (2, 3) needs 24", "cut off"},
               [] { read_npy_header(bytes_of(kRowMajor).first(128), kRowMajor.size() - 1); });
  expect_error(Errc::corrupt, {"25 bytes of data; \"<i4\" of shape (2, 3) needs 24", "appended"},
               [] { read_npy_header(bytes_of(kRowMajor).first(128), kRowMajor.size() + 1); });
}

TEST(Npy, RefusesAnotherHeader) {
  struct Case {
    std::string header;
    std::string_view words;
  };
  const std::string rest = ", 'fortran_order': False, 'shape': (0,)}";
  const auto of_descr = [](const std::string& descr) { return dict(descr, "False", "(0,)"); };
  const auto of_order = [](const std::string& order) { return dict("'<f4'", order, "(0,)"); };
  const auto of_shape = [](const std::string& shape) { return dict("'<f4'", "False", shape); };
  const std::string tuple = "expected a tuple of integers: (), (2,) or (2, 3)";
  const std::vector<Case> cases{
      {"", "at byte 10: found its end; expected '{'"},
      {"  ", "at byte 12: found its end; expected '{'"},
      {"['descr']", "at byte 10: found \"['descr']\"; expected '{'"},
      {"{", "at byte 11: found its end; expected a key or '}'"},
      {"{}", "has no key descr"},
      {"{'descr': '<f4'}", "has no key fortran_order"},
      {"{'descr': '<f4', 'fortran_order': False}", "has no key shape"},
      {"{'descr': '<f4', 'x': 3" + rest,
       "has the key \"x\"; expected only descr, fortran_order, shape"},
      {"{'descr': '<f4', 'descr': '<f4'" + rest, "has the key descr twice"},
      {"{'shape': (), 'descr': '<f4'" + rest, "has the key shape twice"},
      {"{'fortran_order': True, 'descr': '<f4'" + rest, "has the key fortran_order twice"},
      {"{descr: '<f4'" + rest, "expected a key or '}'"},
      {"{,}", "expected a key or '}'"},
      {"{'descr' '<f4'" + rest, "found \"'<f4', 'fortran_order': \"; expected ':'"},
      {"{'descr': '<f4' 'fortran_order': False}", "expected ',' or '}'"},
      {"{'descr': '<f4'", "found its end; expected ',' or '}'"},
      {of_descr("'<f4'") + "x", "found \"x\"; expected nothing but spaces after '}'"},
      {of_descr("'<f4'") + "\0"s, "found \"\\x00\"; expected nothing but spaces after '}'"},
      {"{'descr': '<f4'\0"s + rest, "expected ',' or '}'"},
      {of_descr("3"), "expected descr, a string like '<f4'"},
      {"{'descr': '<f4", "expected descr, a string like '<f4'"},
      {"{'descr': '<f4\"}", "expected descr, a string like '<f4'"},
      {of_descr("'<\\x664'"), "expected descr, a string like '<f4'"},
      {of_descr("'<f\n4'"), "expected descr, a string like '<f4'"},
      {of_descr("[('x', '<f4')]"), "descr is of a structured type, which weft doesn't read"},
      {of_descr("('<f4', (2,))"), "descr is of a structured type, which weft doesn't read"},
      {of_descr("{'names': ['x']}"), "descr is of a structured type, which weft doesn't read"},
      {of_descr("'|O'"), "descr \"|O\" is of Python objects, which weft doesn't read"},
      {of_descr("'O'"), "descr \"O\" is of Python objects, which weft doesn't read"},
      {of_descr("''"), "descr \"\"; expected '<', '>'"},
      {of_descr("'<c8'"), "descr \"<c8\"; expected '<', '>'"},
      {of_descr("'<U5'"), "descr \"<U5\"; expected '<', '>'"},
      {of_descr("'|S10'"), "descr \"|S10\"; expected '<', '>'"},
      {of_descr("'|V2'"), "descr \"|V2\"; expected '<', '>'"},
      {of_descr("'<M8[ns]'"), "descr \"<M8[ns]\"; expected '<', '>'"},
      {of_descr("'<f16'"), "descr \"<f16\"; expected '<', '>'"},
      {of_descr("'<f3'"), "b1, i1, u1, i2, u2, f2, i4, u4, f4, i8, u8, f8; convert the array"},
      {of_descr("'|f4'"), "descr \"|f4\"; expected '<', '>'"},
      {of_descr("'=f4'"), "descr \"=f4\"; expected '<', '>'"},
      {of_descr("'f4'"), "descr \"f4\"; expected '<', '>'"},
      {of_order("false"),
       "found \"false, 'shape': (0,), }\\n\"; expected fortran_order, True or False"},
      {of_order("1"), "expected fortran_order, True or False"},
      {of_order("'True'"), "expected fortran_order, True or False"},
      {of_order("Truee"), "expected fortran_order, True or False"},
      {of_order(""), "expected fortran_order, True or False"},
      {of_shape("3"), tuple},
      {of_shape("[3]"), tuple},
      {of_shape("(,)"), tuple},
      {of_shape("(2,,3)"), tuple},
      {of_shape("(2, 3"), tuple},
      {of_shape("(2 3)"), "(2) isn't a tuple, but (2,) is"},
      {of_shape("(2)"), "(2) isn't a tuple, but (2,) is"},
      {of_shape("(2, 3 4)"), tuple},
      {of_shape("(2, '3')"), tuple},
      {of_shape("(2, 3.0)"), tuple},
      {of_shape("(2, +3)"), tuple},
      {of_shape("(2, 9223372036854775808)"), tuple},
      {of_shape("(2, -3)"), "shape [2,-3] has size -3; sizes must be at least 0"},
      {of_shape("(1, 1, 1, 1, 1, 1, 1)"), "shape has more than 6 dims"},
      {of_shape("(9007199254740993,)"), "has more than 2^53 elements"},
      {of_shape("(4294967296, 4294967296)"), "has more than 2^53 elements"},
      {of_shape("(0, 4294967296, 4294967296)"), "has more than 2^53 elements"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.header);
    const std::string file = npy(c.header);
    const std::string message =
        expect_error(Errc::corrupt, {c.words}, [&] { read_file(bytes_of(file)); });
    EXPECT_LT(message.size(), 400U);
  }
}

TEST(Npy, ReordersWhatNumPyWrote) {
  const auto reordered = [](const std::string& file) {
    const NpyHeader header = read_file(bytes_of(file));
    const auto data = to_row_major(header, bytes_of(file).subspan(header.data_begin));
    return std::string(as_text(data));
  };
  EXPECT_EQ(reordered(kRowMajor), kRowMajor.substr(128));
  EXPECT_EQ(reordered(kFortranBig), "\0\0\1\0\2\0\3\0\4\0\5\0"s);
  EXPECT_EQ(reordered(kScalar), "\1"s);
}

/// Returns the position of an element in the file, by the definition of row-major and column-major
/// order.
std::size_t place_of(const NpyHeader& header, std::span<const std::int64_t> index) {
  std::int64_t place = 0;
  for (int i = 0; i < header.shape.size(); ++i) {
    const int dim = header.fortran_order ? header.shape.size() - 1 - i : i;
    place = place * header.shape[dim] + index[static_cast<std::size_t>(dim)];
  }
  return static_cast<std::size_t>(place);
}

TEST(Npy, ReordersElementByElement) {
  for (const std::size_t element_bytes : {1U, 2U, 4U, 8U}) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{1, 5}, Shape{4, 3}, Shape{0, 3},
                               Shape{3, 0}, Shape{2, 3, 4}, Shape{2, 1, 3, 2, 1, 2}}) {
      for (const bool fortran : {false, true}) {
        for (const bool big : {false, true}) {
          SCOPED_TRACE(
              fmt::format("{} bytes, {}, {}, {}", element_bytes, shape.to_string(), fortran, big));
          const NpyHeader header{.descr = "",
                                 .fortran_order = fortran,
                                 .big_endian = big,
                                 .element_bytes = static_cast<std::int64_t>(element_bytes),
                                 .shape = shape};
          const auto count = static_cast<std::size_t>(shape.num_elements());
          std::vector<std::byte> data(count * element_bytes);
          for (std::size_t i = 0; i < data.size(); ++i)
            data[i] = static_cast<std::byte>(i * 37 + 11);
          const auto out = to_row_major(header, data);
          ASSERT_EQ(out.size(), data.size());
          for (std::size_t i = 0; i < count; ++i) {
            std::array<std::int64_t, kDimCountMax> index{};
            auto rest = static_cast<std::int64_t>(i);
            for (int dim = shape.size() - 1; dim >= 0; --dim) {
              index[static_cast<std::size_t>(dim)] = rest % shape[dim];
              rest /= shape[dim];
            }
            const std::size_t from = place_of(header, index) * element_bytes;
            for (std::size_t b = 0; b < element_bytes; ++b) {
              EXPECT_EQ(out[i * element_bytes + b], data[from + (big ? element_bytes - 1 - b : b)]);
            }
          }
        }
      }
    }
  }
}

TEST(Npy, RefusesToReorderDataOfAnotherSize) {
  const NpyHeader header = read_file(bytes_of(kFortranBig));
  const auto data = bytes_of(kFortranBig).subspan(header.data_begin);
  expect_error(Errc::invalid_argument, {"11 bytes of data are given, but the header says 12"},
               [&] { to_row_major(header, data.first(11)); });
  NpyHeader other = header;
  other.element_bytes = 3;
  other.shape = {4};
  expect_error(Errc::invalid_argument, {"elements of 3 bytes"}, [&] { to_row_major(other, data); });
}

}  // namespace
}  // namespace weft::npy_test
