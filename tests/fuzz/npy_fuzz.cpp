/// Reads the header of an .npy file with these bytes, and reorders its data.

#include "data/formats/npy.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void read_file(std::span<const std::byte> file) {
  const NpyHeader header = read_npy_header(file, file.size());
  const auto data = file.subspan(header.data_begin);
  if (header.dtype) {
    const TensorType type{*header.dtype, header.shape};
    const std::vector<std::byte> written = write_npy_header(type);
    const NpyHeader again = read_npy_header(written, written.size() + data.size());
    WEFT_CHECK(again.dtype == header.dtype && again.shape == header.shape);
    WEFT_CHECK(again.element_bytes == header.element_bytes && again.data_begin == written.size());
    WEFT_CHECK(!again.fortran_order && !again.big_endian);
  }

  // Row-major data are the Fortran-ordered data of the reversed shape.
  const std::vector<std::byte> row_major = to_row_major(header, data);
  NpyHeader transposed = header;
  std::reverse_copy(header.shape.begin(), header.shape.end(), &transposed.shape[0]);
  transposed.big_endian = false;
  NpyHeader as_stored = header;
  as_stored.fortran_order = false;
  WEFT_CHECK(to_row_major(transposed, row_major) == to_row_major(as_stored, data));
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_file);
  return 0;
}
