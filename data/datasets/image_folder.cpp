#include <weft/data/image_files.hpp>

#include <weft/data/files.hpp>
#include <weft/data/tar_files.hpp>

namespace weft {

DatasetPtr image_folder(const std::string& path, const ImageFolderOptions& options) {
  const ImageField& image = options.image;
  return class_folder(
      path,
      {.extensions = TarImage{}.extension,
       .field = field_of(image),
       .decode = [image](std::span<const std::byte> file, const ItemWriter& out,
                         ItemRandom& random) { decode_image(file, image, random, out.bytes(0)); },
       .label = options.label});
}

}  // namespace weft
