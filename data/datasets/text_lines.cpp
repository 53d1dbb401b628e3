#include "data/datasets/text_lines.hpp"

#include <algorithm>
#include <string_view>

#include "data/formats/csv.hpp"

namespace weft {

TextLines::TextLines(const std::string& path, EmptyLines empty) : file_(path) {
  of_file(path, [&] { find_lines(empty); });
}

void TextLines::find_lines(EmptyLines empty) {
  const auto head = file_.head(4);
  std::uint64_t at = csv_text_begin({reinterpret_cast<const char*>(head.data()), head.size()});
  std::uint64_t begin = at;
  bool has_text = false;
  const auto end_line = [&](std::uint64_t end) {
    if (end - begin > kLineBytesMax) {
      fail(Errc::corrupt, "the line at byte {} has {} bytes; at most {} are possible", begin,
           end - begin, kLineBytesMax);
    }
    if (has_text || empty == EmptyLines::kept) begins_.push_back(begin);
    has_text = false;
  };
  file_.scan(at, [&](std::span<const std::byte> piece) {
    for (const std::byte byte : piece) {
      ++at;
      const char c = static_cast<char>(byte);
      if (c == '\n') {
        end_line(at);
        begin = at;
      } else {
        has_text = has_text || (c != ' ' && c != '\t' && c != '\r');
      }
    }
  });
  if (begin < at) end_line(at);
  begins_.push_back(at);
  begins_.shrink_to_fit();
}

std::string TextLines::read(std::int64_t line) const {
  const auto place = static_cast<std::size_t>(line);
  const std::uint64_t begin = begins_[place];
  // Reads up to the next line that isn't omitted. Omitted lines before it are cut off below.
  std::string text(static_cast<std::size_t>(std::min(begins_[place + 1] - begin, kLineBytesMax)),
                   '\0');
  file_.read(begin, std::as_writable_bytes(std::span(text)));
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::size_t TextLines::number(std::int64_t line) const {
  return line_number(file_, begins_[static_cast<std::size_t>(line)]);
}

std::size_t line_number(const InputFile& file, std::uint64_t offset) {
  std::size_t line = 1;
  std::uint64_t left = offset;
  file.scan(0, [&](std::span<const std::byte> piece) {
    const auto before =
        piece.first(static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size())));
    line += static_cast<std::size_t>(std::ranges::count(before, static_cast<std::byte>('\n')));
    left -= before.size();
  });
  return line;
}

}  // namespace weft
