#include "data/formats/tar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kBlockBytes = 512;

struct FieldPlace {
  std::size_t begin;
  std::size_t bytes;
};
constexpr FieldPlace kName{0, 100};
constexpr FieldPlace kSize{124, 12};
constexpr FieldPlace kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr FieldPlace kMagic{257, 8};  // includes the version
constexpr FieldPlace kPrefix{345, 155};

/// The values that entries of types x and L set for the entry after them.
struct Extension {
  std::optional<std::string> name{};
  std::optional<std::uint64_t> bytes{};
};

class Header {
 public:
  /// `at` is the offset of the block in the archive, for error messages.
  Header(std::span<const std::byte, kBlockBytes> block, std::uint64_t at)
      : block_(block), at_(at) {}

  bool is_end() const {
    return std::ranges::all_of(block_, [](std::byte byte) { return byte == std::byte{}; });
  }
  /// Checks the checksum. Also accepts a sum of signed bytes, because some old programs wrote such
  /// sums.
  void check_sum() const {
    std::uint64_t sum = 0;
    std::int64_t signed_sum = 0;
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const bool blank = i >= kChecksum.begin && i < kChecksum.begin + kChecksum.bytes;
      const int byte = blank ? ' ' : std::to_integer<int>(block_[i]);
      sum += static_cast<std::uint64_t>(byte);
      signed_sum += byte < 128 ? byte : byte - 256;
    }
    const std::uint64_t stored = number(kChecksum, "the checksum");
    if (stored == sum || static_cast<std::int64_t>(stored) == signed_sum) return;
    fail(Errc::corrupt, "tar: the header at byte {} has the checksum {}; its bytes sum to {}", at_,
         stored, sum);
  }
  char type() const { return std::to_integer<char>(block_[kType]); }
  std::uint64_t size() const { return number(kSize, "the size"); }
  std::string name() const {
    const std::string_view prefix = text(kMagic) == kUstar ? text_to_zero(kPrefix) : "";
    const std::string_view name = text_to_zero(kName);
    return prefix.empty() ? std::string(name) : fmt::format("{}/{}", prefix, name);
  }

 private:
  static constexpr std::string_view kUstar{
      "ustar\0"
      "00",
      8};

  std::string_view text(FieldPlace place) const {
    return {reinterpret_cast<const char*>(block_.data()) + place.begin, place.bytes};
  }
  std::string_view text_to_zero(FieldPlace place) const {
    return text(place).substr(0, text(place).find('\0'));
  }
  std::uint64_t number(FieldPlace place, std::string_view what) const {
    const std::string_view digits = text(place);
    const auto first = static_cast<unsigned char>(digits[0]);
    std::uint64_t value = 0;
    if (first >= 0x80) {
      constexpr std::uint64_t kMax = std::uint64_t{1} << 55;
      if (first != 0x80) refuse(place, what);
      for (const char digit : digits.substr(1)) {
        if (value >= kMax) refuse(place, what);
        value = value << 8 | static_cast<unsigned char>(digit);
      }
      return value;
    }
    std::size_t i = std::min(digits.find_first_not_of(' '), digits.size());
    for (; i < digits.size() && digits[i] >= '0' && digits[i] <= '7'; ++i) {
      value = value << 3 | static_cast<std::uint64_t>(digits[i] - '0');
    }
    if (i < digits.size() && digits[i] != ' ' && digits[i] != '\0') refuse(place, what);
    return value;
  }
  [[noreturn]] void refuse(FieldPlace place, std::string_view what) const {
    fail(Errc::corrupt,
         "tar: {} in the header at byte {} is {}: expected a number; is it a tar file?", what, at_,
         in_quotes(text(place)));
  }

  std::span<const std::byte, kBlockBytes> block_;
  std::uint64_t at_;
};

/// Reads records "LENGTH KEY=VALUE\n" and calls `take(key, value)` for each.
template <typename Take>
void read_records(std::string_view records, Take take) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [end, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(end - records.data());
    // A record has at least a space, an equals sign and the end of the line.
    if (error != std::errc() || length > records.size() || length < digits + 3 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      fail(Errc::corrupt, "tar: a pax record begins with {}: expected its length, KEY=VALUE",
           in_quotes(records.substr(0, 24)));
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      fail(Errc::corrupt, "tar: a pax record is {}: expected KEY=VALUE", in_quotes(record));
    }
    take(record.substr(0, equals), record.substr(equals + 1));
    records.remove_prefix(length);
  }
}

Extension read_pax(std::string_view records, Extension extension) {
  read_records(records, [&](std::string_view key, std::string_view value) {
    if (key == "path" && !value.empty()) extension.name = value;
    if (key == "size" && !value.empty()) {
      std::uint64_t bytes = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (error != std::errc() || end != value.data() + value.size()) {
        fail(Errc::corrupt, "tar: a pax record has the size {}", in_quotes(value));
      }
      extension.bytes = bytes;
    }
    if (key.starts_with("GNU.sparse.")) {
      fail(Errc::version,
           "tar: has a sparse file, which weft doesn't read; pack it without --sparse");
    }
  });
  return extension;
}

class Scanner {
 public:
  Scanner(std::uint64_t file_bytes, const ReadAt& read,
          const std::function<void(const TarEntry&)>& take)
      : file_bytes_(file_bytes), read_(read), take_(take) {}

  void run() {
    std::array<std::byte, kBlockBytes> block;
    for (;;) {
      if (file_bytes_ - at_ < kBlockBytes) {
        fail(Errc::corrupt,
             "tar: ends after {} bytes without the empty block at the end; was the file cut off?",
             file_bytes_);
      }
      read_(at_, block);
      const Header header(block, at_);
      if (header.is_end()) return;
      header.check_sum();
      at_ += kBlockBytes;
      take_entry(header);
    }
  }

 private:
  void take_entry(const Header& header) {
    const char type = header.type();
    std::uint64_t bytes = header.size();
    switch (type) {
      case 'x': extension_ = read_pax(read_text(bytes), std::move(extension_)); return;
      case 'g':
        if (const Extension all = read_pax(read_text(bytes), {}); all.name || all.bytes) {
          fail(Errc::version, "tar: has a pax header that gives all entries one name or size");
        }
        return;
      case 'L': {
        const std::string name = read_text(bytes);
        extension_.name = name.substr(0, name.find('\0'));
        return;
      }
      case 'S':
        fail(Errc::version,
             "tar: has a sparse file, which weft doesn't read; pack it without --sparse");
      case 'M':
        fail(Errc::version,
             "tar: is one part of an archive in several files, which weft doesn't read");
      default: break;
    }
    if (extension_.bytes) bytes = *extension_.bytes;
    // Links, devices, folders and pipes have no data, even if their headers have a size.
    if (type >= '1' && type <= '6') bytes = 0;
    const std::uint64_t begin = at_;
    pass(bytes);
    if (type == '0' || type == '\0' || type == '7') {
      const TarEntry entry{extension_.name.value_or(header.name()), begin, bytes};
      // Before POSIX, a file whose name ends with '/' was a folder.
      if (!entry.name.ends_with('/')) take_(entry);
    }
    extension_ = {};
  }

  /// Moves past an entry's data.
  void pass(std::uint64_t bytes) {
    if (bytes > file_bytes_ - at_) {
      fail(Errc::corrupt, "tar: {} bytes of data at byte {} of a file of {}; was the file cut off?",
           bytes, at_, file_bytes_);
    }
    at_ += std::min((bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes, file_bytes_ - at_);
  }
  std::string read_text(std::uint64_t bytes) {
    if (bytes > kTarNameBytesMax) {
      fail(Errc::corrupt,
           "tar: an extended header at byte {} has {} bytes; at most {} are possible", at_, bytes,
           kTarNameBytesMax);
    }
    const std::uint64_t begin = at_;
    pass(bytes);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    read_(begin, std::as_writable_bytes(std::span(text)));
    return text;
  }

  const std::uint64_t file_bytes_;
  const ReadAt& read_;
  const std::function<void(const TarEntry&)>& take_;
  std::uint64_t at_ = 0;
  Extension extension_{};
};

}  // namespace

void scan_tar(std::uint64_t file_bytes, const ReadAt& read,
              const std::function<void(const TarEntry& entry)>& take) {
  Scanner(file_bytes, read, take).run();
}

}  // namespace weft
