#pragma once
/// Text as numbers, one for each different letter, and a dataset of the windows of the text from
/// which a model learns.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace letters {

struct Text {
  std::string letters;  ///< the different letters, ascending; a letter's number is its index here
  std::vector<std::int32_t> ids;

  std::string decode(std::span<const std::int32_t> numbers) const;
};

/// Throws weft::Error{io} for a file that can't be read, and {invalid_argument} for a file with
/// fewer than `length` + 1 letters.
Text read_text(const std::string& path, std::int64_t length);

/// The dataset of all windows: item i is the window of `length` letters that begins at letter i.
/// Field "ids" has these letters, and "next" has the letter after each of them. The text must
/// outlive the dataset.
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

/// Draws one of `places` windows at random for each row of each step, in epochs of `steps` steps.
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
