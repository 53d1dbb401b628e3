#include "examples/common/text.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <utility>

#include <weft/tensor.hpp>

namespace letters {

namespace {

/// The windows drawn for the rows of one step.
class Drawn : public weft::SampleOrder {
 public:
  Drawn(std::uint64_t step, std::vector<std::int64_t> places)
      : SampleOrder(step, step + 1), places_(std::move(places)) {}
  weft::Item item(std::uint64_t step, std::int64_t row) const override {
    return {.index = places_[static_cast<std::size_t>(row)], .epoch = step};
  }

 private:
  const std::vector<std::int64_t> places_;
};

std::vector<weft::Field> window_fields(std::int64_t length) {
  const weft::TensorType type{weft::DType::i32, {length}};
  return {{"ids", type}, {"next", type}};
}

}  // namespace

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

Windows::Windows(const Text& text, std::int64_t length)
    : text_(text), length_(length), fields_(window_fields(length)) {}

std::int64_t Windows::size() const { return std::ssize(text_.ids) - length_; }

void Windows::read_item(const weft::Item& item, weft::ItemMemory out) const {
  const weft::ItemWriter window(fields_, out);
  const auto first = text_.ids.begin() + item.index;
  std::copy_n(first, length_, window.get<std::int32_t>("ids").begin());
  std::copy_n(first + 1, length_, window.get<std::int32_t>("next").begin());
}

weft::SampleOrderPtr RandomWindows::order_at(std::uint64_t step) const {
  std::seed_seq words{seed_, seed_ >> 32, step, step >> 32};
  std::mt19937_64 random(words);
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < batch_size_; ++row) {
    places.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(places_)));
  }
  return std::make_shared<const Drawn>(step, std::move(places));
}

}  // namespace letters
