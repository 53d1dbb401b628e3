#pragma once
/// Measures how fast a folder of JPEGs is read as batches for training, in images/s of one core, in
/// comparison with torch's DataLoader.

#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct PicturesOptions {
  int rounds = 10;
  int pictures = 500;  ///< the number of pictures of 500x375, the size of ImageNet's
  int batch = 50;
};

/// Measures how fast each picture is decoded, and a random part of it is turned into 224x224
/// normalized pixels. weft uses one reading thread. torch's DataLoader, in its own process, uses
/// torchvision's transforms, if they are installed (Debian's Pillow uses the same decoder as weft,
/// libjpeg-turbo). The limit only decodes files from the page cache. weft decodes a picture at half
/// its size if the result is even smaller. The ratio of a row is weft's images per second of CPU
/// time divided by the row's.
std::vector<TableRow> measure_pictures(const PicturesOptions& options);

}  // namespace weft::bench
