#include "examples/mnist_cnn/idx.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <weft/error.hpp>

namespace mnist {
namespace {

using weft::Errc;

/// Mean and standard deviation of the training images, as a share of 255.
constexpr float kMean = 0.1307F;
constexpr float kDeviation = 0.3081F;

/// A file of unsigned bytes: sizes, and the elements behind them.
struct Idx {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> elements;
};

std::int64_t big_endian(std::span<const char> bytes) {
  std::int64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

Idx read_idx(const std::string& path, std::size_t num_dims) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    weft::fail(Errc::io,
               "{}: can't be read; `tools/dev data mnist` fetches MNIST into build/data/mnist",
               path);
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const std::size_t header = 4 + 4 * num_dims;
  const std::int64_t magic = 0x0800 | static_cast<std::int64_t>(num_dims);
  if (bytes.size() < header || big_endian(std::span(bytes).first(4)) != magic) {
    weft::fail(Errc::corrupt, "{}: isn't an IDX file of unsigned bytes in {} dims (magic {:#010x})",
               path, num_dims, magic);
  }
  Idx idx;
  std::int64_t elements = 1;
  for (std::size_t dim = 0; dim < num_dims; ++dim) {
    idx.sizes.push_back(big_endian(std::span(bytes).subspan(4 + 4 * dim, 4)));
    elements *= std::min<std::int64_t>(idx.sizes.back(), std::int64_t{1} << 20);
  }
  if (elements != static_cast<std::int64_t>(bytes.size() - header)) {
    weft::fail(Errc::corrupt, "{}: holds {} elements; its header promises {}", path,
               bytes.size() - header, elements);
  }
  idx.elements.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return idx;
}

}  // namespace

std::vector<float> Images::normalized(std::span<const std::int64_t> indices) const {
  const auto size = static_cast<std::size_t>(height * width);
  std::vector<float> result;
  result.reserve(indices.size() * size);
  for (const std::int64_t index : indices) {
    for (const std::uint8_t pixel :
         std::span(pixels).subspan(static_cast<std::size_t>(index) * size, size)) {
      result.push_back((static_cast<float>(pixel) / 255 - kMean) / kDeviation);
    }
  }
  return result;
}

std::vector<std::int32_t> Images::labels_of(std::span<const std::int64_t> indices) const {
  std::vector<std::int32_t> result;
  for (const std::int64_t index : indices)
    result.push_back(labels[static_cast<std::size_t>(index)]);
  return result;
}

Images load(const std::string& folder, const std::string& prefix) {
  Idx images = read_idx(folder + "/" + prefix + "-images-idx3-ubyte", 3);
  const Idx labels = read_idx(folder + "/" + prefix + "-labels-idx1-ubyte", 1);
  if (images.sizes[0] != labels.sizes[0]) {
    weft::fail(Errc::corrupt, "{}: {} images but {} labels", folder, images.sizes[0],
               labels.sizes[0]);
  }
  return {.height = images.sizes[1],
          .width = images.sizes[2],
          .pixels = std::move(images.elements),
          .labels = {labels.elements.begin(), labels.elements.end()}};
}

}  // namespace mnist
