#include "data/pytorch/torch_file.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"
#include "data/formats/zip.hpp"

namespace weft {
namespace {

constexpr std::string_view kPickle = "/data.pkl";
/// The first bytes of a file in PyTorch's old format: a pickle of the number that identifies the
/// format.
constexpr std::string_view kOldHead = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19";

using Entries = std::map<std::string, ZipEntry>;

/// Returns the folder within the zip that contains all entries.
std::string find_root(const Entries& entries) {
  std::string root;
  for (const auto& [name, entry] : entries) {
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - kPickle.size()) continue;
    if (!root.empty())
      fail(Errc::corrupt, "torch: has two pickles, {} and another", in_quotes(root));
    root = name.substr(0, name.size() - kPickle.size());
  }
  if (root.empty()) {
    fail(Errc::corrupt,
         "torch: a zip without data.pkl, which torch.save() writes; an .npz is read by `weft "
         "import`");
  }
  return root;
}

void require_little_endian(const Entries& entries, const std::string& root, const ReadAt& read) {
  const auto found = entries.find(root + "/byteorder");
  if (found == entries.end() || found->second.bytes > 16) return;
  const std::vector<std::byte> bytes = read_zip_entry(found->second, read);
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order == "little") return;
  fail(Errc::version, "torch: its byte order is {}; expected little", in_quotes(order));
}

/// Returns the offset of the tensor's first element in the file.
std::uint64_t place(const PickledTensor& tensor, const Entries& entries, const std::string& root) {
  const auto found = entries.find(root + "/data/" + tensor.storage);
  if (found == entries.end()) {
    fail(Errc::corrupt, "torch: {}: its storage {} isn't in the file", in_quotes(tensor.name),
         in_quotes(tensor.storage));
  }
  const ZipEntry& entry = found->second;
  if (entry.deflated) {
    fail(Errc::version, "torch: {} is compressed; torch.save() doesn't compress",
         in_quotes(entry.name));
  }
  if (entry.bytes < tensor.storage_bytes) {
    fail(Errc::corrupt, "torch: {}: its storage {} has {} bytes, but {} according to the pickle",
         in_quotes(tensor.name), in_quotes(tensor.storage), entry.bytes, tensor.storage_bytes);
  }
  const bool is_empty = std::ranges::find(tensor.sizes, 0) != tensor.sizes.end();
  const auto element_bytes = static_cast<std::uint64_t>(tensor.element_bytes);
  return entry.data_begin + (is_empty ? 0 : tensor.offset * element_bytes);
}

}  // namespace

bool TorchTensor::is_row_major() const {
  std::int64_t expected = 1;
  for (std::size_t d = pickled.sizes.size(); d-- > 0;) {
    if (pickled.sizes[d] == 0) return true;
    if (pickled.sizes[d] != 1 && pickled.strides[d] != expected) return false;
    if (__builtin_mul_overflow(expected, pickled.sizes[d], &expected)) return false;
  }
  return true;
}

bool is_old_torch_file(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with(kOldHead);
}

std::vector<TorchTensor> read_torch_file(std::uint64_t file_bytes, const ReadAt& read) {
  Entries entries;
  for (ZipEntry& entry : read_zip_directory(file_bytes, read)) {
    std::string name = entry.name;
    entries.emplace(std::move(name), std::move(entry));
  }
  const std::string root = find_root(entries);
  if (entries.contains(root + "/constants.pkl")) {
    fail(Errc::version,
         "torch: is a TorchScript program (torch.jit.save): save only its tensors, for example by "
         "torch.save(torch.jit.load(path).state_dict(), other)");
  }
  require_little_endian(entries, root, read);
  const ZipEntry& pickle = entries.at(root + std::string(kPickle));
  if (pickle.bytes > kPickleBytesMax) {
    fail(Errc::corrupt, "torch: has a pickle of {} bytes; at most {} are possible", pickle.bytes,
         kPickleBytesMax);
  }
  std::vector<TorchTensor> tensors;
  for (PickledTensor& tensor : read_torch_pickle(read_zip_entry(pickle, read))) {
    const std::uint64_t begin = place(tensor, entries, root);
    tensors.push_back({std::move(tensor), begin});
  }
  return tensors;
}

}  // namespace weft
