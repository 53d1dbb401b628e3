#pragma once
/// A folder of JPEGs as batches for training: images/s of one core, beside torch's DataLoader.

#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct PicturesOptions {
  int rounds = 10;
  int pictures = 500;  ///< of 500x375, as ImageNet's
  int batch = 50;
};

/// Each picture is decoded, and a random part of it becomes 224x224, normalised: by weft with one
/// reading thread, by torch's DataLoader in its own process with torchvision's transforms, if they
/// are installed (Debian's Pillow has the decoder that weft has, libjpeg-turbo). The limit: files
/// in the page cache are decoded, and nothing else. weft decodes at half the size what becomes
/// smaller than that. The ratio is weft's to the row, of images per second of CPU time.
std::vector<TableRow> measure_pictures(const PicturesOptions& options);

}  // namespace weft::bench
