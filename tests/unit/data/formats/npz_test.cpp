#include "data/formats/npz.hpp"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "data/formats/npy.hpp"
#include "tests/support/golden.hpp"
#include "tests/unit/transport/format/damage.hpp"

namespace weft::npz_test {
namespace {

using testing::expect_error;
using testing::read_golden;

ReadAt reader_of(std::span<const std::byte> file) {
  return [file](std::uint64_t offset, std::span<std::byte> out) {
    ASSERT_LE(offset, file.size());
    ASSERT_LE(out.size(), file.size() - offset);  // the reader asks only for existing bytes
    std::ranges::copy(file.subspan(offset, out.size()), out.begin());
  };
}

std::vector<ZipEntry> read_directory(std::span<const std::byte> file) {
  return read_zip_directory(file.size(), reader_of(file));
}

/// Returns the names and the unpacked contents of an .npz file's arrays.
std::vector<std::pair<std::string, std::string>> read_file(std::span<const std::byte> file) {
  std::vector<std::pair<std::string, std::string>> arrays;
  for (const ZipEntry& entry : npz_arrays(read_directory(file))) {
    arrays.emplace_back(entry.name, as_text(read_zip_entry(entry, reader_of(file))));
  }
  return arrays;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Npz, ReadsFilesOfOthers) {
  const std::string x = read_golden("data/rows.npy");
  for (const std::string name : {"stored.npz", "deflated.npz", "no_zip64.npz", "streamed.npz"}) {
    SCOPED_TRACE(name);
    const std::string file = read_golden("data/" + name);
    const auto arrays = read_file(bytes_of(file));
    ASSERT_GE(arrays.size(), 1U);
    EXPECT_EQ(arrays[0], std::pair(std::string("x"), x));
    if (arrays.size() == 1) continue;
    ASSERT_EQ(arrays.size(), 4U);
    EXPECT_EQ(arrays[1].first, "y");
    EXPECT_EQ(arrays[2].first, "ok");
    EXPECT_EQ(arrays[3].first, "short");
    EXPECT_EQ(arrays[3].second.substr(arrays[3].second.size() - 8),
              read_file(bytes_of(read_golden("data/stored.npz")))[3].second.substr(128));
  }
}

TEST(Npz, UnpacksInPieces) {
  const std::string file = read_golden("data/ratio.npz");
  const auto arrays = read_file(bytes_of(file));
  ASSERT_EQ(arrays.size(), 1U);
  ASSERT_EQ(arrays[0].second.size(), 128U + 4 * 4 * 300'000);
  for (const std::size_t row : {0U, 1U, 2U, 3U}) {
    for (const std::size_t column : {0U, 299'999U}) {
      float value = 0;
      std::memcpy(&value, arrays[0].second.data() + 128 + 4 * (300'000 * row + column), 4);
      EXPECT_EQ(value, static_cast<float>(row));
    }
  }
}

std::string write(const std::vector<std::pair<std::string, std::vector<float>>>& arrays) {
  std::string file;
  NpzWriter writer([&](std::span<const std::byte> bytes) { file += as_text(bytes); });
  for (const auto& [name, elements] : arrays) {
    writer.add(name, {DType::f32, {static_cast<std::int64_t>(elements.size())}},
               std::as_bytes(std::span(elements)));
  }
  writer.finish();
  return file;
}

TEST(Npz, ReadsWhatWasWritten) {
  for (const std::size_t count : {0U, 1U, 100U}) {
    std::vector<std::pair<std::string, std::vector<float>>> arrays;
    for (std::size_t i = 0; i < count; ++i) {
      arrays.emplace_back(fmt::format("layer.{}/weight", i), std::vector<float>(i, 0.5F));
    }
    const std::string file = write(arrays);
    const auto entries = npz_arrays(read_directory(bytes_of(file)));
    ASSERT_EQ(entries.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(entries[i].name, arrays[i].first);
      EXPECT_FALSE(entries[i].deflated);
      const auto bytes = read_zip_entry(entries[i], reader_of(bytes_of(file)));
      const NpyHeader header = read_npy_header(bytes, bytes.size());
      EXPECT_EQ(header.shape, Shape{static_cast<std::int64_t>(i)});
      EXPECT_EQ(as_text(std::span(bytes).subspan(header.data_begin)),
                as_text(std::as_bytes(std::span(arrays[i].second))));
    }
  }
}

TEST(Npz, WritesTheSameBytesAlways) {
  // Python's zipfile has read this golden file and verified its checksums.
  testing::expect_golden("data/written.npz", write({{"x", {1, 2, 3}}, {"empty", {}}}));
}

TEST(Npz, RefusesToWriteWhatItCouldntRead) {
  NpzWriter writer([](std::span<const std::byte>) {});
  const std::vector<float> x(3);
  const TensorType type{DType::f32, {3}};
  const auto bytes = std::as_bytes(std::span(x));
  writer.add("x", type, bytes);
  expect_error(Errc::invalid_argument, {"two arrays have the name \"x\""},
               [&] { writer.add("x", type, bytes); });
  expect_error(Errc::invalid_argument, {"1 to 65531 bytes; 0 were given"},
               [&] { writer.add("", type, bytes); });
  expect_error(Errc::invalid_argument, {"65532 were given"},
               [&] { writer.add(std::string(65'532, 'n'), type, bytes); });
  expect_error(Errc::invalid_argument, {"\"y\": 8 bytes are given for f32[3], which has 12"},
               [&] { writer.add("y", type, bytes.first(8)); });
  expect_error(Errc::invalid_argument, {"npy has no bf16"}, [&] {
    writer.add("y", {DType::bf16, {6}}, bytes);
  });
}

TEST(Npz, RefusesEveryTruncation) {
  for (const std::string name : {"stored.npz", "deflated.npz", "streamed.npz"}) {
    const std::string file = read_golden("data/" + name);
    expect_truncations_refused(bytes_of(file), read_file);
  }
}

TEST(Npz, RefusesOrSurvivesEveryFlippedBit) {
  for (const std::string name : {"stored.npz", "deflated.npz", "no_zip64.npz"}) {
    const std::string file = read_golden("data/" + name);
    const auto whole = read_file(bytes_of(file));
    int accepted = 0;
    std::string damaged = file;
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      try {
        // Flipped bits in fields such as dates and versions change no name and no checksum.
        const auto arrays = read_file(bytes_of(damaged));
        ASSERT_EQ(arrays.size(), whole.size());
        for (std::size_t i = 0; i < arrays.size(); ++i) {
          EXPECT_EQ(arrays[i].second, whole[i].second) << bit;
        }
        ++accepted;
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::version) << error.what();
      }
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    }
    EXPECT_GT(accepted, 0);
  }
}

/// Returns the file with `bytes` bytes at `at` replaced by a little-endian value.
std::string with(std::string file, std::size_t at, std::uint32_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8U) {
    file[at + i] = static_cast<char>(value & 0xffU);
  }
  return file;
}

TEST(Npz, RefusesWhatTheDirectoryCantSay) {
  const std::string file = read_golden("data/no_zip64.npz");
  const std::size_t end = file.size() - 22;
  const std::size_t central = file.rfind("PK\1\2");
  const auto refused = [](Errc code, const std::string& bytes, std::string_view words) {
    expect_error(code, {words}, [&] { read_file(bytes_of(bytes)); });
  };
  refused(Errc::corrupt, "x", "has no end record");
  refused(Errc::corrupt, "PK\3\4" + file.substr(4, 100), "has no end record");
  refused(Errc::version, with(file, end + 4, 1, 2), "is one part of an archive in several files");
  refused(Errc::version, with(file, end + 10, 2, 2), "is one part of an archive in several files");
  refused(Errc::corrupt, with(with(file, end + 8, 2, 2), end + 10, 2, 2),
          "1 entries; the end record says 2");
  refused(Errc::corrupt, with(file, end + 16, 5, 4), "but must end at");
  refused(Errc::corrupt, with(file, end + 12, 1, 4), "but must end at");
  refused(Errc::corrupt, with(file, end + 12, 0xffffffff, 4), "the zip64 locator begins with");
  refused(Errc::version, with(file, central + 8, 1, 2), "\"x.npy\" is encrypted");
  refused(Errc::corrupt, with(file, central + 10, 0, 2), "its local header differs");
  refused(Errc::corrupt, with(file, central + 20, 100'000, 4), "its data end outside the file");
  refused(Errc::corrupt, with(file, central + 24, 1'000'000'000, 4), "can't be packed to");
  refused(Errc::corrupt, with(file, central + 24, 223, 4), "more bytes than the directory says");
  refused(Errc::corrupt, with(file, central + 24, 225, 4), "the directory says 225");
  refused(Errc::corrupt, with(file, central + 42, 100'000, 4), "is outside the file");
  refused(Errc::corrupt, with(file, central + 16, 0, 4), "checksum");
  refused(Errc::corrupt, with(file, 30, 'y', 1), "its local header differs");
  refused(Errc::version, read_golden("data/bzip2.npz"),
          "compressed by method 12; expected 0 (stored)");
}

TEST(Npz, RefusesEntriesThatArentArrays) {
  expect_error(Errc::corrupt, {"has the entry \"readme.txt\"; expected names that end with .npy"},
               [] { npz_arrays({{.name = "readme.txt"}}); });
}

}  // namespace
}  // namespace weft::npz_test
