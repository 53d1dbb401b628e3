#include "data/formats/csv.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::csv_test {
namespace {

using namespace std::string_literals;
using testing::expect_error;

using Table = std::vector<std::vector<std::string>>;

/// Returns the records of a text that arrives in pieces of `piece` bytes.
Table read_table(const std::string& text, char separator = ',', std::size_t piece = 1) {
  const std::uint64_t begin = csv_text_begin(text);
  CsvScanner scanner(separator, begin);
  for (std::size_t at = begin; at < text.size(); at += piece) {
    scanner.add(std::string_view(text).substr(at, piece));
  }
  const std::vector<std::uint64_t> begins = scanner.finish();
  Table table;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    std::string record = text.substr(begins[i], begins[i + 1] - begins[i]);
    std::vector<std::string_view> cells;
    split_csv_record(record, separator, cells);
    table.emplace_back(cells.begin(), cells.end());
  }
  return table;
}

TEST(Csv, ReadsRecords) {
  const std::vector<std::pair<std::string, Table>> cases{
      {"", {}},
      {"\n\r\n\n", {}},
      {"1", {{"1"}}},
      {"1,2\n3,4\n", {{"1", "2"}, {"3", "4"}}},
      {"1,2\r\n3,4", {{"1", "2"}, {"3", "4"}}},
      {"1,2\r\n\r\n\n3\r\n", {{"1", "2"}, {"3"}}},
      {",\n,,\n", {{"", ""}, {"", "", ""}}},
      {" 1 ,\t2\n", {{" 1 ", "\t2"}}},
      {"\"\"\n", {{""}}},
      {"\"a,b\",\"c\nd\"\n5,6\n", {{"a,b", "c\nd"}, {"5", "6"}}},
      {"\"a\"\"b\"\"\",\"\"\"\"\r\nx", {{"a\"b\"", "\""}, {"x"}}},
      {"a\"b,c\"\n", {{"a\"b", "c\""}}},
      {"\"a\"", {{"a"}}},
      {"\"a\"\"\"", {{"a\""}}},
      {"\"a\"\r\n\"b\",\n", {{"a"}, {"b", ""}}},
      {"\xef\xbb\xbfid,x\n", {{"id", "x"}}},
      {"\xef\xbc\xa1,x\n", {{"\xef\xbc\xa1", "x"}}},
      {"a\rb,c\n", {{"a\rb", "c"}}},
  };
  for (const auto& [text, table] : cases) {
    for (const std::size_t piece : {1U, 2U, 3U, 1000U}) {
      EXPECT_EQ(read_table(text, ',', piece), table) << text;
    }
  }
  EXPECT_EQ(read_table("1;2,5\n", ';'), (Table{{"1", "2,5"}}));
  EXPECT_EQ(read_table("1\t\"a\tb\"\n", '\t'), (Table{{"1", "a\tb"}}));
}

TEST(Csv, ReadsWhatPythonWrote) {
  EXPECT_EQ(read_table(testing::read_golden("data/table.csv")),
            (Table{{"id", "name, quoted", "a", "b \"x\"", "label"},
                   {"1", "line\nbreak, and \"\"quotes\"\"", "0.5", "-1.25", "3"},
                   {"2", "", "0.001", "2", "0"},
                   {"3", "plain", "", "7", "1"}}));
}

TEST(Csv, RefusesQuotesThatDontEnd) {
  expect_error(Errc::corrupt, {"record 2, at byte 7: the file ends within quotes"},
               [] { read_table("1\n\"2,3\n"); });
  for (const std::string text :
       {"\"a\"b\n", "\"a\" ,b\n", "\"a\"\rb\n", "\"a\"\r\r\n", "\"a\"\r\"\n"}) {
    expect_error(Errc::corrupt, {"record 1, at byte", "after the closing quote"},
                 [&] { read_table(text); });
  }
}

TEST(Csv, RefusesARecordThatIsTooLong) {
  const std::string longest(kCsvRecordBytesMax - 1, 'x');
  EXPECT_EQ(read_table("1\n" + longest + "\n2\n", ',', 1000), (Table{{"1"}, {longest}, {"2"}}));
  expect_error(Errc::corrupt, {"record 2", "more than 1048576 bytes; is a quote missing?"},
               [&] { read_table("1\n\"" + longest + "\n2\n", ',', 1000); });
}

}  // namespace
}  // namespace weft::csv_test
