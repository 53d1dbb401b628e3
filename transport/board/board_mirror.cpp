// The part of Board that copies rows between the boards of several hosts.

#include <array>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "transport/board/board_row.hpp"

namespace weft {
namespace {

using board_format::BoardRowV2;

using RowWords = std::array<std::uint64_t, sizeof(BoardRowV2) / sizeof(std::uint64_t)>;
constexpr std::size_t kSequenceWord = offsetof(BoardRowV2, sequence) / sizeof(std::uint64_t);
constexpr std::size_t kMessageSequenceWord =
    offsetof(BoardRowV2, message_sequence) / sizeof(std::uint64_t);

std::uint64_t* words_of(void* row) { return static_cast<std::uint64_t*>(row); }

}  // namespace

std::string Board::bytes_of_row(int index) const {
  const std::uint64_t* const shared = words_of(row(index));
  RowWords copy;
  const bool is_whole = read_between_writes(shared[kSequenceWord], [&] {
    read_between_writes(shared[kMessageSequenceWord], [&] {
      for (std::size_t word = 0; word < copy.size(); ++word) copy[word] = load_field(shared[word]);
    });
  });
  if (!is_whole) return {};
  return {reinterpret_cast<const char*>(copy.data()), sizeof copy};
}

void Board::copy_row(int index, std::string_view bytes, std::int64_t shift_ns) const {
  if (index < 1 || index >= num_rows()) {
    fail(Errc::corrupt, "board of job {}: another host has sent row {}, expected 1 to {}",
         header_.job, index, num_rows() - 1);
  }
  if (bytes.size() != sizeof(BoardRowV2)) {
    fail(Errc::corrupt, "board of job {}: a row of another host has {} bytes, expected {}",
         header_.job, bytes.size(), sizeof(BoardRowV2));
  }
  BoardRowV2 copy;
  std::memcpy(&copy, bytes.data(), sizeof copy);
  for (std::int64_t* const time :
       {&copy.updated_ns, &copy.since_ns, &copy.moved_ns, &copy.inside_since_ns}) {
    if (*time != 0) *time += shift_ns;
  }
  // The copy has no writer that could end an edit of the message fields, so the copy must not show
  // an edit in progress.
  copy.message_sequence &= ~std::uint64_t{1};
  require_own(index, read_row(copy));
  RowWords words;
  std::memcpy(words.data(), &copy, sizeof words);
  std::uint64_t* const shared = words_of(row(index));
  const std::uint64_t odd = load_field(shared[kSequenceWord]) | 1U;
  store_field(shared[kSequenceWord], odd);
  for (std::size_t word = 0; word < words.size(); ++word) {
    if (word != kSequenceWord) store_field(shared[word], words[word]);
  }
  store_field(shared[kSequenceWord], odd + 1);
}

}  // namespace weft
