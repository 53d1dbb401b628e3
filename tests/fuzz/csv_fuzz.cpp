/// Reads the fuzz input as a whole CSV file, whose records are found and split. The first byte sets
/// the size of the pieces in which the file arrives.

#include <string>
#include <vector>

#include "data/formats/csv.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

std::vector<std::uint64_t> find_records(std::string_view text, std::size_t piece) {
  const std::uint64_t begin = csv_text_begin(text);
  CsvScanner scanner(',', begin);
  for (std::size_t at = begin; at < text.size(); at += piece) scanner.add(text.substr(at, piece));
  return scanner.finish();
}

void read_file(std::span<const std::byte> file) {
  if (file.empty()) return;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 1, file.size() - 1);
  const auto begins = find_records(text, 1 + std::to_integer<std::size_t>(file[0]));
  WEFT_CHECK(begins == find_records(text, text.size() + 1));
  WEFT_CHECK(!begins.empty() && begins.back() == text.size());
  std::vector<std::string_view> cells;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    WEFT_CHECK(begins[i] < begins[i + 1]);
    std::string record(text.substr(begins[i], begins[i + 1] - begins[i]));
    split_csv_record(record, ',', cells);
    // Cells that are quoted and split again are the same.
    std::string again;
    for (const std::string_view cell : cells) {
      if (!again.empty()) again += ',';
      again += '"';
      for (const char c : cell) again += c == '"' ? "\"\"" : std::string(1, c);
      again += '"';
    }
    WEFT_CHECK(!cells.empty() && find_records(again, again.size()).size() == 2);
    std::string unquoted = again;
    std::vector<std::string_view> same;
    split_csv_record(unquoted, ',', same);
    WEFT_CHECK(same == cells);
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_file);
  return 0;
}
