#include "data/items/resample.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// The input pixels that contribute to an output pixel. Their weights sum to 1.
struct Taps {
  std::int64_t first = 0;
  std::size_t weights_begin = 0;
  std::size_t count = 0;
};

class Axis {
 public:
  /// Computes the taps of output pixels first..first+count-1. The range from `begin` to `begin +
  /// length` of a line of `in_size` pixels is divided into `out_size` output pixels.
  Axis(double begin, double length, std::int64_t in_size, std::int64_t out_size, std::int64_t first,
       std::int64_t count) {
    const double step = length / static_cast<double>(out_size);
    // The filter is as wide as an output pixel, but at least as wide as an input pixel.
    const double reach = std::max(step, 1.0);
    const auto least = static_cast<std::int64_t>(std::floor(begin));
    const std::int64_t most =
        std::clamp(static_cast<std::int64_t>(std::ceil(begin + length)), least + 1, in_size);
    for (std::int64_t i = first; i < first + count; ++i) {
      const double centre = begin + (static_cast<double>(i) + 0.5) * step;
      const std::int64_t low =
          std::clamp(static_cast<std::int64_t>(std::floor(centre - reach + 0.5)), least, most - 1);
      const std::int64_t high =
          std::clamp(static_cast<std::int64_t>(std::floor(centre + reach + 0.5)), low + 1, most);
      add_taps(low, high, centre, reach);
    }
  }

  std::span<const Taps> taps() const { return taps_; }
  std::span<const float> weights(const Taps& taps) const {
    return std::span(weights_).subspan(taps.weights_begin, taps.count);
  }

 private:
  void add_taps(std::int64_t low, std::int64_t high, double centre, double reach) {
    const std::size_t begin = weights_.size();
    double sum = 0;
    for (std::int64_t i = low; i < high; ++i) {
      const double distance = std::abs(static_cast<double>(i) + 0.5 - centre) / reach;
      const double weight = std::max(0.0, 1 - distance);
      weights_.push_back(static_cast<float>(weight));
      sum += weight;
    }
    if (sum == 0) {  // possible because of rounding
      weights_[begin] = 1;
      sum = 1;
    }
    for (std::size_t i = begin; i < weights_.size(); ++i) {
      weights_[i] = static_cast<float>(weights_[i] / sum);
    }
    taps_.push_back({low, begin, weights_.size() - begin});
  }

  std::vector<Taps> taps_;
  std::vector<float> weights_;
};

template <int kChannels, typename T>
void resample_channels(const Pixels<T>& from, const Axis& columns, const Axis& rows,
                       std::span<const ChannelOut> out) {
  // Reads only the columns that some output pixel needs.
  const Taps& last = columns.taps().back();
  const auto begin = static_cast<std::size_t>(columns.taps().front().first);
  const std::size_t end = static_cast<std::size_t>(last.first) + last.count;
  std::vector<float> line((end - begin) * kChannels);
  for (std::size_t y = 0; y < rows.taps().size(); ++y) {
    const Taps& taps = rows.taps()[y];
    std::ranges::fill(line, 0.0F);
    auto row = static_cast<std::size_t>(taps.first);
    for (const float weight : rows.weights(taps)) {
      const T* const pixels =
          from.data + (row++ * static_cast<std::size_t>(from.size.width) + begin) * kChannels;
      for (std::size_t i = 0; i < line.size(); ++i) {
        line[i] += weight * static_cast<float>(pixels[i]);
      }
    }
    for (std::size_t x = 0; x < columns.taps().size(); ++x) {
      const Taps& below = columns.taps()[x];
      const float* pixel = &line[(static_cast<std::size_t>(below.first) - begin) * kChannels];
      float sum[kChannels] = {};
      for (const float weight : columns.weights(below)) {
        for (int c = 0; c < kChannels; ++c) sum[c] += weight * pixel[c];
        pixel += kChannels;
      }
      for (int c = 0; c < kChannels; ++c) {
        const ChannelOut& channel = out[static_cast<std::size_t>(c)];
        channel.data[static_cast<std::int64_t>(y) * channel.row_stride +
                     static_cast<std::int64_t>(x)] = sum[c] * channel.scale + channel.offset;
      }
    }
  }
}

}  // namespace

template <typename T>
void resample(const Pixels<T>& from, const Resampling& how, PixelSize size,
              std::span<const ChannelOut> out) {
  if (size.width < 1 || size.height < 1) return;
  const Axis columns(how.rect.left, how.rect.width, from.size.width, how.scaled.width, how.left,
                     size.width);
  const Axis rows(how.rect.top, how.rect.height, from.size.height, how.scaled.height, how.top,
                  size.height);
  if (from.channels == 3) {
    resample_channels<3>(from, columns, rows, out);
  } else {
    WEFT_CHECK(from.channels == 1, from.channels);
    resample_channels<1>(from, columns, rows, out);
  }
}
template void resample(const Pixels<std::uint8_t>&, const Resampling&, PixelSize,
                       std::span<const ChannelOut>);
template void resample(const Pixels<std::uint16_t>&, const Resampling&, PixelSize,
                       std::span<const ChannelOut>);
template void resample(const Pixels<float>&, const Resampling&, PixelSize,
                       std::span<const ChannelOut>);

PixelRect random_rect(const RandomArea& area, PixelSize picture, ItemRandom& random) {
  const auto width = static_cast<double>(picture.width);
  const auto height = static_cast<double>(picture.height);
  const double log_min = std::log(area.ratio_min);
  const double log_max = std::log(area.ratio_max);
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    const double share = area.area_min + (area.area_max - area.area_min) * random.uniform();
    const double ratio = std::exp(log_min + (log_max - log_min) * random.uniform());
    const double pixels = share * width * height;
    const double w = std::round(std::sqrt(pixels * ratio));
    const double h = std::round(std::sqrt(pixels / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const auto top = static_cast<double>(random.below(static_cast<std::int64_t>(height - h) + 1));
    const auto left = static_cast<double>(random.below(static_cast<std::int64_t>(width - w) + 1));
    return {left, top, w, h};
  }
  const double ratio = std::clamp(width / height, area.ratio_min, area.ratio_max);
  const double w = std::clamp(std::round(height * ratio), 1.0, width);
  const double h = std::clamp(std::round(width / ratio), 1.0, height);
  return {std::floor((width - w) / 2), std::floor((height - h) / 2), w, h};
}

void check_area(const RandomArea& area, std::string_view what) {
  if (!(area.area_min > 0 && area.area_min <= area.area_max && area.area_max <= 1)) {
    fail(Errc::invalid_argument, "{}: area_min = {}, area_max = {}: expected 0 < min <= max <= 1",
         what, area.area_min, area.area_max);
  }
  constexpr double kRatioMax = 1e3;
  if (!(area.ratio_min >= 1 / kRatioMax && area.ratio_min <= area.ratio_max &&
        area.ratio_max <= kRatioMax)) {
    fail(Errc::invalid_argument,
         "{}: ratio_min = {}, ratio_max = {}: expected {} <= min <= max <= {}", what,
         area.ratio_min, area.ratio_max, 1 / kRatioMax, kRatioMax);
  }
}

void check_channel_numbers(std::string_view what, std::span<const float> numbers,
                           std::int64_t channels) {
  if (numbers.size() != 1 && std::ssize(numbers) != channels) {
    fail(Errc::invalid_argument, "{} has {} numbers: expected 1, or {}, one for each channel", what,
         numbers.size(), channels);
  }
  for (const float number : numbers) {
    if (std::isfinite(number)) continue;
    fail(Errc::invalid_argument, "{} has {}: expected finite numbers", what, number);
  }
}

void check_divisors(std::string_view what, std::span<const float> numbers) {
  for (const float number : numbers) {
    if (number > 0) continue;
    fail(Errc::invalid_argument, "{} has {}: expected numbers above 0", what, number);
  }
}

}  // namespace weft
