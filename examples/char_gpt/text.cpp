#include "examples/char_gpt/text.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include <weft/error.hpp>

namespace char_gpt {

std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> Text::batch(
    std::int64_t batch, std::int64_t length, std::uint64_t seed, std::uint64_t step) const {
  std::seed_seq words{seed, seed >> 32, step, step >> 32};
  std::mt19937_64 random(words);
  const std::size_t places = ids.size() - static_cast<std::size_t>(length);
  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> result;
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(random() % places);
    result.first.insert(result.first.end(), begin, begin + length);
    result.second.insert(result.second.end(), begin + 1, begin + length + 1);
  }
  return result;
}

std::string Text::decode(std::span<const std::int32_t> numbers) const {
  std::string text;
  for (const std::int32_t number : numbers) text += letters[static_cast<std::size_t>(number)];
  return text;
}

Text read_text(const std::string& path, std::int64_t length) {
  std::ifstream in(path, std::ios::binary);
  if (!in) weft::fail(weft::Errc::io, "--text = {}: can't be read", path);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (static_cast<std::int64_t>(bytes.size()) <= length) {
    weft::fail(weft::Errc::invalid_argument,
               "--text = {}: has {} letters: expected more than --length = {}", path, bytes.size(),
               length);
  }
  const std::set<char> letters(bytes.begin(), bytes.end());
  Text text{.letters = std::string(letters.begin(), letters.end()), .ids = {}};
  for (const char letter : bytes) {
    text.ids.push_back(static_cast<std::int32_t>(text.letters.find(letter)));
  }
  return text;
}

}  // namespace char_gpt
