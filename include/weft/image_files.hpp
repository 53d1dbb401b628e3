#pragma once
/// Pictures in files (JPEG, PNG) as fields of one shape.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/data_files.hpp>
#include <weft/image_transforms.hpp>
#include <weft/item_random.hpp>

namespace weft {

/// How a picture gets to the size of its field, if it has another.
enum class ImageFit : std::uint8_t {
  cover,    ///< it covers the field, and its middle is cut out
  contain,  ///< it lies in the middle of the field, whole, between black bars
  fill,     ///< its sides are scaled, each by its own factor
};

/// A picture as a field of [channels, height, width]. Sizes are changed by a triangle filter (a
/// weighted mean of the pixels below; where it is enlarged, bilinear), as PIL and torchvision do by
/// default. A JPEG of more than twice the size is shrunk by 2, 4 or 8 while it is decoded.
struct ImageField {
  std::string name = "x";
  std::int64_t height = 224;
  std::int64_t width = 224;
  int channels = 3;  ///< 3: red, green, blue; 1: gray
  /// f32 or bf16: (value / 255 - mean) / stddev. i32: 0 to 255.
  DType dtype = DType::f32;
  std::vector<float> mean{};    ///< of each channel, or one for all. Default: 0
  std::vector<float> stddev{};  ///< likewise. Default: 1
  ImageFit fit = ImageFit::cover;
  /// With `cover`: the shorter side gets this size before the middle is cut out (torchvision's
  /// Resize(256), CenterCrop(224)). Default: as small as it may be.
  std::int64_t short_side = 0;
  /// Instead of `fit`: a part chosen at random, of the whole picture, before it gets its size.
  std::optional<RandomArea> random_area{};
};

/// The pixels that a picture may have.
inline constexpr std::int64_t kImagePixelsMax = std::int64_t{1} << 27;

/// Throws invalid_argument for options that contradict each other.
Field field_of(const ImageField& image);

/// Decodes a picture, of which `file` has all bytes, to `out`, which is of the field's size. For
/// datasets of one's own. JPEG: baseline and progressive; gray, YCbCr, RGB, CMYK; without regard to
/// EXIF's orientation. PNG: all kinds; of 16 bits the upper 8 count, and transparency doesn't.
/// Throws corrupt for a picture that is neither, is damaged or cut off, or is too large; version
/// for arithmetic coding and 12 bits; invalid_argument for the options and for `out`.
void decode_image(std::span<const std::byte> file, const ImageField& image, ItemRandom& random,
                  std::span<std::byte> out);

struct ImageFolderOptions {
  ImageField image{};
  std::string label = "label";  ///< the name of the second field, i32[]
};
/// Pictures in folders, one for each class: path/CLASS/.../NAME.jpg (.jpeg, .png; in any case),
/// torchvision's ImageFolder. The label is the number of the class, of classes sorted by name;
/// items are sorted by class, then folder, then name. Other files are left out, links are followed.
/// Opening reads the folders, and files as they are asked for. Throws not_found or io with the
/// path; invalid_argument if there are no classes, and for a class without pictures.
DatasetPtr image_folder(const std::string& path, const ImageFolderOptions& options = {});
/// The names of the classes, by label.
std::vector<std::string> image_classes(const std::string& path);

}  // namespace weft
