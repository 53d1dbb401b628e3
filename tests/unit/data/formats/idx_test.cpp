#include "data/formats/idx.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/golden.hpp"
#include "tests/unit/transport/format/damage.hpp"

namespace weft::idx_test {
namespace {

using namespace std::string_literals;
using testing::expect_error;

IdxHeader read_file(std::span<const std::byte> file) { return read_idx_header(file, file.size()); }
IdxHeader read_text(const std::string& file) { return read_file(std::as_bytes(std::span(file))); }

TEST(Idx, ReadsFilesOfOthers) {
  EXPECT_EQ(read_text(testing::read_golden("data/images-idx3-ubyte")),
            (IdxHeader{{'u', 1, false}, {3, 2, 2}, 16}));
  EXPECT_EQ(read_text(testing::read_golden("data/labels-idx1-ubyte")),
            (IdxHeader{{'u', 1, false}, {3}, 8}));
  EXPECT_EQ(read_text(testing::read_golden("data/floats-idx2")),
            (IdxHeader{{'f', 4, true}, {2, 2}, 12}));
}

TEST(Idx, KnowsTheTypes) {
  const std::string dims = "\0\0\0\1"s;
  for (const auto& [code, element] :
       {std::pair(8, ForeignElement{'u', 1, false}), std::pair(9, ForeignElement{'i', 1, false}),
        std::pair(11, ForeignElement{'i', 2, true}), std::pair(12, ForeignElement{'i', 4, true}),
        std::pair(13, ForeignElement{'f', 4, true}), std::pair(14, ForeignElement{'f', 8, true})}) {
    const std::string file = "\0\0"s + static_cast<char>(code) + "\1" + dims +
                             std::string(static_cast<std::size_t>(element.bytes), 'x');
    EXPECT_EQ(read_text(file).element, element) << code;
  }
}

TEST(Idx, RefusesEveryTruncation) {
  for (const std::string name : {"images-idx3-ubyte", "labels-idx1-ubyte", "floats-idx2"}) {
    const std::string file = testing::read_golden("data/" + name);
    expect_truncations_refused(std::as_bytes(std::span(file)), read_file);
  }
}

TEST(Idx, RefusesAnotherHeader) {
  const auto refused = [](const std::string& file, std::string_view words) {
    expect_error(Errc::corrupt, {words}, [&] { read_text(file); });
  };
  refused("", "has 0 bytes");
  refused("\x1f\x8b\x08\x08"s, "is compressed by gzip; decompress it: gunzip FILE");
  refused("\0\1\x08\1\0\0\0\0"s, "begins with 00 01 08");
  refused("\0\0\x0a\1\0\0\0\0"s, "begins with 00 00 0a; expected 00 00 and the type");
  refused("\0\0\x08\0"s, "has 0 dims; expected 1 to 6");
  refused("\0\0\x08\x07"s, "has 7 dims; expected 1 to 6");
  refused("\0\0\x08\2\0\0\0\1"s, "ends after 8 bytes, within its header of 12");
  refused("\0\0\x08\1\0\0\0\2x"s, "1 bytes of data; shape (2) needs 2; was the file cut off?");
  refused("\0\0\x08\1\0\0\0\1xx"s, "2 bytes of data; shape (1) needs 1; was the file appended");
  refused("\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s, "has more than 2^53");
}

}  // namespace
}  // namespace weft::idx_test
