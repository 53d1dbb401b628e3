/// Implements mix_up() and cut_mix().

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include <weft/data/image_transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

/// Returns a uniform number between 0 and 1, both excluded.
double open_uniform(ItemRandom& random) {
  constexpr double kWords = 4294967296.0;
  return (static_cast<double>(random()) + 0.5) / kWords;
}

double normal(ItemRandom& random) {
  const double radius = std::sqrt(-2 * std::log(open_uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * open_uniform(random));
}

/// Draws a number from the gamma distribution, and returns its logarithm. The method is that of G.
/// Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000).
double log_gamma(double shape, ItemRandom& random) {
  if (shape < 1) {
    return log_gamma(shape + 1, random) + std::log(open_uniform(random)) / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(open_uniform(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

double beta(double alpha, ItemRandom& random) {
  const double first = log_gamma(alpha, random);
  const double second = log_gamma(alpha, random);
  return 1 / (1 + std::exp(second - first));
}

using Pixels2 = std::pair<std::span<float>, std::span<const float>>;

/// A function that mixes the second picture into the first, and returns the share of the first that
/// remains.
using MixPictures = double (*)(const Shape& shape, Pixels2 pictures, double share,
                               ItemRandom& random);

double blend(const Shape&, Pixels2 pictures, double share, ItemRandom&) {
  const auto first = static_cast<float>(share);
  std::ranges::transform(
      pictures.first, pictures.second, pictures.first.begin(),
      [&](float mine, float other) { return first * mine + (1 - first) * other; });
  return share;
}

double paste(const Shape& shape, Pixels2 pictures, double share, ItemRandom& random) {
  const std::int64_t height = shape[1];
  const std::int64_t width = shape[2];
  const std::int64_t x = random.below(width);
  const std::int64_t y = random.below(height);
  const double half_side = 0.5 * std::sqrt(1 - share);
  const auto half_width = static_cast<std::int64_t>(half_side * static_cast<double>(width));
  const auto half_height = static_cast<std::int64_t>(half_side * static_cast<double>(height));
  const std::int64_t left = std::max<std::int64_t>(x - half_width, 0);
  const std::int64_t right = std::min(x + half_width, width);
  const std::int64_t top = std::max<std::int64_t>(y - half_height, 0);
  const std::int64_t bottom = std::min(y + half_height, height);
  for (std::int64_t row = 0; row < shape[0] * height; ++row) {
    if (row % height < top || row % height >= bottom) continue;
    std::copy_n(pictures.second.begin() + row * width + left, right - left,
                pictures.first.begin() + row * width + left);
  }
  return 1 -
         static_cast<double>((right - left) * (bottom - top)) / static_cast<double>(width * height);
}

constexpr std::string_view kPartnerAdvice =
    "a partner is drawn from all items; use files whose items can be read in any order "
    "(tar_files() of archives that aren't compressed), or mix the rows of a batch";

class MixedImages : public Dataset {
 public:
  MixedImages(std::string_view kind, DatasetPtr source, MixImagesOptions options, MixPictures mix)
      : source_(std::move(source)),
        options_(std::move(options)),
        mix_(mix),
        name_(name_of_parts(kind, {&source_, 1})),
        fields_(source_->fields()) {
    constexpr double kAlphaMax = 1e3;
    if (!(options_.alpha > 0 && options_.alpha <= kAlphaMax)) {
      fail(Errc::invalid_argument, "{}: alpha = {}: expected above 0 and at most {}", name_,
           options_.alpha, kAlphaMax);
    }
    if (options_.num_classes < 2) {
      fail(Errc::invalid_argument, "{}: num_classes = {}: expected 2 or more", name_,
           options_.num_classes);
    }
    picture_ = find(options_.field);
    label_ = find(options_.label);
    const TensorType& picture = fields_[picture_].type;
    if (picture.dtype != DType::f32 || picture.shape.size() != 3) {
      fail(Errc::invalid_argument, "{}: field '{}' is {}: expected f32[channels, height, width]",
           name_, options_.field, picture.to_string());
    }
    if (fields_[label_].type != TensorType{DType::i32, {}}) {
      fail(Errc::invalid_argument, "{}: field '{}' is {}: expected i32[], a class", name_,
           options_.label, fields_[label_].type.to_string());
    }
    fields_[label_].type = {DType::f32, {options_.num_classes}};
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  std::size_t find(const std::string& name) const {
    const auto found = std::ranges::find(fields_, name, &Field::name);
    if (found != fields_.end()) return static_cast<std::size_t>(found - fields_.begin());
    fail(Errc::invalid_argument, "{}: there is no field '{}'; there are: {}", name_, name,
         fields_text(fields_));
  }

  void read_item(const Item& item, ItemMemory out) const override {
    ItemRandom random(item);
    const double share = beta(options_.alpha, random);
    const Item partner{random.below(size()), item.epoch, inner_seed(item.seed, 1)};
    // All fields of the item except the class are read directly into `out`.
    std::int32_t own_class = 0;
    std::vector<std::span<std::byte>> places(out.begin(), out.end());
    places[label_] = std::as_writable_bytes(std::span(&own_class, 1));
    source_->read({item.index, item.epoch, inner_seed(item.seed, 0)}, places);
    const ItemBuffer other = weft::read_item(*source_, partner);
    const ItemWriter writer(fields_, out);
    const double remaining =
        mix_(fields_[picture_].type.shape,
             {writer.get<float>(picture_), other.view().get<float>(picture_)}, share, random);
    const std::span<float> shares = writer.get<float>(label_);
    std::ranges::fill(shares, 0.0F);
    add_share(shares, own_class, remaining);
    add_share(shares, other.view().get<std::int32_t>(label_)[0], 1 - remaining);
  }

  void add_share(std::span<float> shares, std::int32_t label, double share) const {
    if (label < 0 || label >= options_.num_classes) {
      fail(Errc::invalid_argument, "'{}' is {}: expected 0 or more, and less than num_classes = {}",
           options_.label, label, options_.num_classes);
    }
    shares[static_cast<std::size_t>(label)] += static_cast<float>(share);
  }

  const DatasetPtr source_;
  const MixImagesOptions options_;
  const MixPictures mix_;
  const std::string name_;
  std::vector<Field> fields_;
  std::size_t picture_ = 0;
  std::size_t label_ = 0;
};

}  // namespace

DatasetPtr mix_up(DatasetPtr source, MixImagesOptions options) {
  check_parts("mix_up", {&source, 1});
  check_any_order("mix_up", {&source, 1}, kPartnerAdvice);
  return std::make_shared<const MixedImages>("mix_up", std::move(source), std::move(options),
                                             blend);
}

DatasetPtr cut_mix(DatasetPtr source, MixImagesOptions options) {
  check_parts("cut_mix", {&source, 1});
  check_any_order("cut_mix", {&source, 1}, kPartnerAdvice);
  return std::make_shared<const MixedImages>("cut_mix", std::move(source), std::move(options),
                                             paste);
}

}  // namespace weft
