/// Implements npy_file(), npz_file() and idx_file().

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/ranges.h>

#include <weft/data/files.hpp>
#include <weft/tensor/error.hpp>

#include "data/datasets/array_rows.hpp"
#include "data/formats/idx.hpp"
#include "data/formats/npy.hpp"
#include "data/formats/npz.hpp"
#include "data/remote/scan_progress.hpp"

namespace weft {
namespace {

StoredArray npy_array(const NpyHeader& header, const FileField& field) {
  if (header.fortran_order && header.shape.size() > 1) {
    fail(
        Errc::invalid_argument,
        "'{}' is in Fortran order, so its rows aren't contiguous; save np.ascontiguousarray(array)",
        field.name);
  }
  return {.name = field.name,
          .shape = header.shape,
          .cast = make_cast(element_of(header), field),
          .data_begin = header.data_begin};
}

StoredArray npz_array(const std::shared_ptr<const InputFile>& file, const ReadAt& read,
                      const ZipEntry& entry, const FileField& field, std::uint64_t& memory_left) {
  if (!entry.deflated) {
    std::vector<std::byte> head(
        static_cast<std::size_t>(std::min(entry.bytes, kNpyHeaderBytesMax)));
    file->read(entry.data_begin, head);
    StoredArray array = npy_array(read_npy_header(head, entry.bytes), field);
    array.file = file;
    array.data_begin += entry.data_begin;
    return array;
  }
  if (entry.bytes > memory_left) {
    fail(Errc::no_space,
         "'{}' has {} bytes unpacked, but memory_bytes_max leaves only {}; raise memory_bytes_max, "
         "or save by np.savez(), which doesn't compress",
         entry.name, entry.bytes, memory_left);
  }
  memory_left -= entry.bytes;
  std::vector<std::byte> bytes = read_zip_entry(entry, read);
  StoredArray array = npy_array(read_npy_header(bytes, bytes.size()), field);
  array.unpacked = std::move(bytes);
  array.is_unpacked = true;
  return array;
}

const ZipEntry& find_entry(const std::vector<ZipEntry>& entries, const std::string& name) {
  const auto found = std::ranges::find(entries, name, &ZipEntry::name);
  if (found != entries.end()) return *found;
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries) {
    constexpr std::size_t kNamesMax = 20;
    if (names.size() < kNamesMax) names.push_back(fmt::format("'{}'", entry.name));
  }
  fail(Errc::invalid_argument, "has no array '{}'; its arrays are {}{}", name,
       fmt::join(names, ", "), names.size() < entries.size() ? ", ..." : "");
}

}  // namespace

DatasetPtr npy_file(const std::string& path, const FileField& field) {
  const auto file = std::make_shared<const InputFile>(path);
  return array_rows(path, {of_file(path, [&] {
                      StoredArray array = npy_array(
                          read_npy_header(file->head(kNpyHeaderBytesMax), file->bytes()), field);
                      array.file = file;
                      return array;
                    })});
}

DatasetPtr npz_file(const std::string& path, const NpzOptions& options) {
  if (options.memory_bytes_max < 0) {
    fail(Errc::invalid_argument, "npz_file: memory_bytes_max = {}: expected 0 or more",
         options.memory_bytes_max);
  }
  const auto file = std::make_shared<const InputFile>(path);
  ScanProgress progress(path, "bytes", static_cast<std::int64_t>(file->bytes()));
  const ReadAt read = [&](std::uint64_t offset, std::span<std::byte> out) {
    file->read(offset, out);
    progress.advance(std::ssize(out));
  };
  return array_rows(path, of_file(path, [&] {
                      const std::vector<ZipEntry> entries =
                          npz_arrays(read_zip_directory(file->bytes(), read));
                      std::vector<FileField> fields = options.fields;
                      if (fields.empty()) {
                        for (const ZipEntry& entry : entries)
                          fields.push_back({.name = entry.name});
                      }
                      auto memory_left = static_cast<std::uint64_t>(options.memory_bytes_max);
                      std::vector<StoredArray> arrays;
                      for (const FileField& field : fields) {
                        arrays.push_back(npz_array(file, read, find_entry(entries, field.name),
                                                   field, memory_left));
                      }
                      return arrays;
                    }));
}

DatasetPtr idx_file(const std::string& path, const FileField& field) {
  const auto file = std::make_shared<const InputFile>(path);
  return array_rows(path, {of_file(path, [&] {
                      const IdxHeader header =
                          read_idx_header(file->head(kIdxHeaderBytesMax), file->bytes());
                      FileField with_dtype = field;
                      if (header.element.bytes == 1 && !field.dtype) with_dtype.dtype = DType::i32;
                      return StoredArray{.name = field.name,
                                         .shape = header.shape,
                                         .cast = make_cast(header.element, with_dtype),
                                         .file = file,
                                         .data_begin = header.data_begin};
                    })});
}

}  // namespace weft
