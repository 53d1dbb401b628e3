#include "data/pytorch/pickle.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"
#include "data/pytorch/unpickler.hpp"

namespace weft {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kNameBytesMax = 4096;
constexpr std::size_t kDimsMax = 64;
/// The maximum number of visited containers. A container may be in many others, so a small file
/// could describe a huge tree.
constexpr std::size_t kContainersMax = std::size_t{1} << 18;

/// Finds the tensors within a value, and their names.
class Flattening {
 public:
  explicit Flattening(const Unpickler& values) : values_(values) {}

  std::vector<PickledTensor> flatten(PickleId id) {
    visit(id, "", 0);
    return std::move(tensors_);
  }

 private:
  static std::string joined(const std::string& path, std::string_view key) {
    if (path.size() + key.size() >= kNameBytesMax) {
      refuse_pickle("{}: a name has more than {} bytes", in_quotes(path), kNameBytesMax);
    }
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }
  void visit(PickleId id, const std::string& path, int depth) {
    const PickleValue& value = values_.at(id);
    if (value.kind == Kind::tensor) return add(value, path.empty() ? "tensor" : path);
    if (!may_have_tensors(value)) return;
    if (depth == kPickleDepthMax) {
      refuse_pickle("{}: is {} containers deep; does it contain itself?", in_quotes(path), depth);
    }
    if (++containers_ > kContainersMax) {
      refuse_pickle("has more than {} containers", kContainersMax);
    }
    const bool is_dict = value.kind == Kind::dict;
    for (std::size_t i = 0; i < value.items.size(); i += is_dict ? 2 : 1) {
      const PickleId item = value.items[is_dict ? i + 1 : i];
      if (++visits_ > kPickleValuesMax) {
        refuse_pickle("its containers have too many values");
      }
      if (!may_have_tensors(values_.at(item))) continue;
      const std::string key = is_dict ? key_of(value.items[i]) : fmt::format("{}", i);
      visit(item, joined(path, key), depth + 1);
    }
  }
  static bool may_have_tensors(const PickleValue& value) {
    return value.kind == Kind::tensor || value.kind == Kind::dict || value.kind == Kind::list;
  }
  std::string key_of(PickleId id) const {
    const PickleValue& key = values_.at(id);
    if (key.kind == Kind::text) return std::string(key.text);
    if (key.kind == Kind::integer) return fmt::format("{}", key.number);
    return "?";  // for a tuple or another unnamed key
  }
  std::vector<std::int64_t> numbers_of(PickleId id, const std::string& name) const {
    std::vector<std::int64_t> numbers;
    if (values_.at(id).items.size() > kDimsMax) {
      refuse_pickle("{}: has more than {} dims", in_quotes(name), kDimsMax);
    }
    for (const PickleId item : values_.at(id).items) {
      const PickleValue& number = values_.at(item);
      if (number.kind != Kind::integer || number.number < 0) {
        refuse_pickle("{}: has a size or stride that isn't an integer of at least 0",
                      in_quotes(name));
      }
      numbers.push_back(number.number);
    }
    return numbers;
  }
  void add(const PickleValue& value, const std::string& name) {
    const PickleValue& storage = values_.at(value.items[0]);
    PickledTensor tensor{.name = name,
                         .dtype = std::string(value.element->dtype),
                         .element_bytes = value.element->bytes,
                         .sizes = numbers_of(value.items[1], name),
                         .strides = numbers_of(value.items[2], name),
                         .storage = std::string(storage.text),
                         .storage_bytes = static_cast<std::uint64_t>(storage.number)};
    if (!names_.insert(name).second) refuse_pickle("two tensors are named {}", in_quotes(name));
    name_bytes_ += name.size();
    if (name_bytes_ > kPickleBytesMax) refuse_pickle("the names of its tensors are too long");
    if (tensors_.size() == kPickleTensorsMax)
      refuse_pickle("has more than {} tensors", kPickleTensorsMax);
    if (value.number < 0 || tensor.sizes.size() != tensor.strides.size()) {
      refuse_pickle(
          "{}: has {} sizes, {} strides and offset {}: expected a stride for each size, and an "
          "offset of at least 0",
          in_quotes(name), tensor.sizes.size(), tensor.strides.size(), value.number);
    }
    tensor.offset = static_cast<std::uint64_t>(value.number);
    require_within(tensor);
    tensors_.push_back(std::move(tensor));
  }
  static void require_within(const PickledTensor& tensor) {
    if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end()) return;
    const auto bytes = static_cast<std::uint64_t>(tensor.element_bytes);
    const std::uint64_t room = tensor.storage_bytes / bytes;  // in elements
    std::uint64_t last = tensor.offset;
    for (std::size_t d = 0; d < tensor.sizes.size() && last < room; ++d) {
      std::uint64_t step = 0;
      if (__builtin_mul_overflow(static_cast<std::uint64_t>(tensor.sizes[d] - 1),
                                 static_cast<std::uint64_t>(tensor.strides[d]), &step) ||
          __builtin_add_overflow(last, step, &last)) {
        last = room;
      }
    }
    if (last >= room) {
      refuse_pickle("{}: its last element is outside its storage of {} bytes",
                    in_quotes(tensor.name), tensor.storage_bytes);
    }
  }

  const Unpickler& values_;
  std::vector<PickledTensor> tensors_;
  std::set<std::string> names_;
  std::size_t name_bytes_ = 0;
  std::size_t visits_ = 0;      // number of visited values in containers
  std::size_t containers_ = 0;  // number of visited containers
};

}  // namespace

std::uint64_t PickledTensor::bytes() const {
  if (std::ranges::find(sizes, 0) != sizes.end()) return 0;
  auto product = static_cast<std::uint64_t>(element_bytes);
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
  }
  return product;
}

std::vector<PickledTensor> read_torch_pickle(std::span<const std::byte> pickle) {
  if (pickle.size() > kPickleBytesMax) {
    refuse_pickle("has {} bytes; at most {} are possible", pickle.size(), kPickleBytesMax);
  }
  Unpickler unpickler(pickle);
  const PickleId value = unpickler.run();
  return Flattening(unpickler).flatten(value);
}

}  // namespace weft
