#pragma once
/// A text as numbers, each of its letters has one, and the windows of it that a model learns from.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace letters {

struct Text {
  std::string letters;  ///< that occur, in ascending order; a letter's number is its place
  std::vector<std::int32_t> ids;

  std::string decode(std::span<const std::int32_t> numbers) const;
};

/// Throws weft::Error{io} for a file that can't be read and {invalid_argument} for one without
/// `length` + 1 letters.
Text read_text(const std::string& path, std::int64_t length);

/// Item i is the window of `length` letters from letter i on: fields "ids" and, of the letters that
/// follow each, "next". The text must outlive it.
class Windows : public weft::Dataset {
 public:
  Windows(const Text& text, std::int64_t length);

  std::string name() const override { return "windows"; }
  std::int64_t size() const override;
  const std::vector<weft::Field>& fields() const override { return fields_; }

 private:
  void read_item(const weft::Item& item, weft::ItemMemory out) const override;

  const Text& text_;
  const std::int64_t length_;
  const std::vector<weft::Field> fields_;
};

/// Any of `places` windows for each row, drawn anew in each of `steps` steps.
class RandomWindows : public weft::Sampler {
 public:
  RandomWindows(std::int64_t places, std::int64_t batch_size, std::uint64_t steps,
                std::uint64_t seed)
      : places_(places), batch_size_(batch_size), steps_(steps), seed_(seed) {}

  std::int64_t batch_size() const override { return batch_size_; }
  std::uint64_t steps_per_epoch() const override { return steps_; }
  weft::SampleOrderPtr order_at(std::uint64_t step) const override;

 private:
  const std::int64_t places_;
  const std::int64_t batch_size_;
  const std::uint64_t steps_;
  const std::uint64_t seed_;
};

}  // namespace letters
