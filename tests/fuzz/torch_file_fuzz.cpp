/// Reads the fuzz input as a whole torch file, and as the pickle in it, because no mutation would
/// find the checksums of a zip file.

#include "data/pytorch/torch_file.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void check(const PickledTensor& tensor) {
  WEFT_CHECK(!tensor.name.empty());
  WEFT_CHECK(tensor.sizes.size() == tensor.strides.size(), tensor.name);
  WEFT_CHECK(tensor.bytes() == 0 || tensor.storage_bytes > 0, tensor.name);
}

void read_file(std::span<const std::byte> file) {
  const ReadAt read = [file](std::uint64_t offset, std::span<std::byte> out) {
    WEFT_CHECK(offset <= file.size() && out.size() <= file.size() - offset, offset, out.size());
    std::ranges::copy(file.subspan(offset, out.size()), out.begin());
  };
  for (const TorchTensor& tensor : read_torch_file(file.size(), read)) {
    check(tensor.pickled);
    const bool is_within =
        tensor.begin <= file.size() &&
        (!tensor.is_row_major() || tensor.pickled.bytes() <= file.size() - tensor.begin);
    WEFT_CHECK(is_within, tensor.begin, tensor.pickled.bytes());
  }
}

void read_pickle(std::span<const std::byte> pickle) {
  for (const PickledTensor& tensor : read_torch_pickle(pickle)) check(tensor);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  weft::read_or_refuse(bytes, weft::read_file);
  weft::read_or_refuse(bytes, weft::read_pickle);
  return 0;
}
