/// Decodes the fuzz input as an image: in full size, shrunk, and rotated.

#include <weft/data/image_files.hpp>

#include "data/images/orientation.hpp"
#include "data/images/picture.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void read_file(std::span<const std::byte> file) {
  const PixelSize size = picture_size(file);
  WEFT_CHECK(size.width >= 1 && size.height >= 1 && size.width * size.height <= kImagePixelsMax);
  const Picture shrunk = decode_picture(file, true, 8);
  WEFT_CHECK(shrunk.channels == 1, shrunk.channels);
  (void)decode_picture(file, false, 1, true);
  Picture whole = decode_picture(file, false, 1);
  WEFT_CHECK(whole.size == size && (whole.channels == 1 || whole.channels == 3), whole.channels);
  const Orientation orientation = picture_orientation(file);
  turn(whole, orientation);
  WEFT_CHECK(whole.size == turned(size, orientation), whole.size.width);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_file);
  return 0;
}
