#include "data/formats/tar.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::tar_test {
namespace {

using testing::expect_error;

std::vector<TarEntry> scan(const std::string& archive) {
  std::vector<TarEntry> entries;
  const auto bytes = std::as_bytes(std::span(archive));
  scan_tar(
      bytes.size(),
      [&](std::uint64_t offset, std::span<std::byte> out) {
        ASSERT_TRUE(offset <= bytes.size() && out.size() <= bytes.size() - offset);
        std::ranges::copy(bytes.subspan(offset, out.size()), out.begin());
      },
      [&](const TarEntry& entry) { entries.push_back(entry); });
  return entries;
}

std::string golden(const std::string& name) { return testing::read_golden("tar/" + name); }

/// Returns a tar header with a valid checksum.
std::string header(const std::string& name, std::size_t bytes, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, 11, fmt::format("{:011o}", bytes));
  block[156] = type;
  block.replace(257, 8,
                std::string("ustar\0"
                            "00",
                            8));
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char byte : block) sum += static_cast<unsigned char>(byte);
  block.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return block;
}
std::string filled(std::string data) {
  data.resize((data.size() + 511) / 512 * 512, '\0');
  return data;
}
const std::string kEnd(512, '\0');

TEST(Tar, FilesOfGnuTarAndPython) {
  const std::string deep = "train/" + std::string(60, 'a') + "/" + std::string(60, 'b') + "/0003";
  const std::set<std::string> expected{"train/0001.cls",     "train/0001.png", "train/0001.emb.npy",
                                       "train/0001.txt",     "train/0002.cls", "train/0002.png",
                                       "train/0002.emb.npy", "train/README",   deep + ".cls",
                                       deep + ".png",        deep + ".emb.npy"};
  for (const std::string name : {"ustar.tar", "gnu.tar", "pax.tar", "python.tar"}) {
    const std::string archive = golden(name);
    std::set<std::string> names;
    for (const TarEntry& entry : scan(archive)) {
      names.insert(entry.name);
      if (entry.name.ends_with(".cls")) {
        EXPECT_EQ(entry.bytes, 2U) << entry.name;
        EXPECT_EQ(archive[entry.data_begin + 1], '\n') << entry.name;
      }
      if (entry.name.ends_with(".png")) {
        EXPECT_EQ(archive.substr(entry.data_begin, 4), "\x89PNG") << entry.name;
        EXPECT_EQ(archive.substr(entry.data_begin + entry.bytes - 8, 4), "IEND") << entry.name;
      }
    }
    EXPECT_EQ(names, expected) << name;
  }
}

TEST(Tar, NamesAndSizesOfPaxCount) {
  const std::string records = "16 path=dir/a.b\n10 size=3\n13 comment==\n";
  EXPECT_EQ(scan(header("PaxHeader", records.size(), 'x') + filled(records) + header("short", 9) +
                 filled("abc") + header("next", 0) + kEnd),
            (std::vector<TarEntry>{{"dir/a.b", 1536, 3}, {"next", 2560, 0}}));
}

TEST(Tar, LargeSizesAreBinary) {
  std::string block = header("large", 0);
  const std::string size("\x80\0\0\0\0\0\0\x01\0\0\0\0", 12);  // 2^32
  unsigned sum = 0;
  block.replace(124, 12, size);
  block.replace(148, 8, 8, ' ');
  for (const char byte : block) sum += static_cast<unsigned char>(byte);
  block.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  expect_error(Errc::corrupt, {"4294967296 bytes of data at byte 512 of a file of 1024"},
               [&] { (void)scan(block + kEnd); });
}

TEST(Tar, FoldersLinksAndDevicesHaveNoData) {
  EXPECT_EQ(scan(header("folder/", 5, '5') + header("link", 5, '2') + header("old/", 0) +
                 header("file", 1) + filled("x") + header("label", 3, 'V') + filled("abc") + kEnd),
            (std::vector<TarEntry>{{"file", 2048, 1}}));
}

TEST(Tar, WhatIsNoArchiveIsRefused) {
  const auto refused = [](Errc code, const std::string& archive, std::string_view words) {
    expect_error(code, {words}, [&] { (void)scan(archive); });
  };
  refused(Errc::corrupt, "", "ends after 0 bytes without the empty block");
  refused(Errc::corrupt, std::string(600, 'x'), "is it a tar file?");
  refused(Errc::corrupt, header("a", 3) + "ab", "3 bytes of data at byte 512 of a file of 514");
  refused(Errc::corrupt, header("a", 3) + filled("abc"), "without the empty block");
  std::string other = header("a", 0);
  other[0] = 'b';
  refused(Errc::corrupt, other + kEnd, "at byte 0 has the checksum");
  const auto pax = [](const std::string& records) {
    return header("x", records.size(), 'x') + filled(records) + kEnd;
  };
  refused(Errc::corrupt, pax("5 a=bc\n"), "a pax record begins with");
  refused(Errc::corrupt, pax("99 a=b\n"), "a pax record begins with");
  refused(Errc::corrupt, pax("6 abc\n"), "expected KEY=VALUE");
  refused(Errc::corrupt, pax("10 size=x\n"), "has the size \"x\"");
  refused(Errc::corrupt, header("x", 1 << 20, 'x') + std::string(1 << 20, ' ') + kEnd,
          "has 1048576 bytes; at most 65536");
  refused(Errc::version, header("a", 0, 'M') + kEnd, "one part of an archive in several files");
  refused(Errc::version, golden("sparse_gnu.tar"), "sparse");
  refused(Errc::version, golden("sparse_pax.tar"), "sparse");
}

TEST(Tar, EveryCutIsCorrupt) {
  for (const std::string name : {"ustar.tar", "gnu.tar", "pax.tar"}) {
    const std::string archive = golden(name);
    for (std::size_t size = 0; size <= archive.size() - 1024; size += 128) {
      SCOPED_TRACE(fmt::format("{} cut to {}", name, size));
      expect_error(Errc::corrupt, {}, [&] { (void)scan(archive.substr(0, size)); });
    }
  }
}

}  // namespace
}  // namespace weft::tar_test
