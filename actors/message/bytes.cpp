#include <weft/message/bytes.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// The limit on elements without bytes in a message. Without a limit, a corrupt count could make a
/// reader allocate much memory.
constexpr std::size_t kEmptyElementsMax = std::size_t{1} << 16;

/// Returns the shape with these dims. Throws corrupt if the dims aren't valid.
Shape shape_of(std::span<const std::int64_t> dims) {
  try {
    return Shape(dims);
  } catch (const Error& error) {
    fail(Errc::corrupt, "a message has a tensor with an impossible shape: {}", error.what());
  }
}

}  // namespace

void MessageWriter::put_large(const void* bytes, std::size_t size) {
  if (large_.empty())
    large_.assign(small_.begin(), small_.begin() + static_cast<std::ptrdiff_t>(size_));
  const auto* first = static_cast<const std::byte*>(bytes);
  large_.insert(large_.end(), first, first + size);
  size_ = large_.size();
}

void MessageWriter::count(std::size_t value) {
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    fail(Errc::invalid_argument, "a message has a list of {} elements; put them into a HostTensor",
         value);
  }
  const auto word = static_cast<std::uint32_t>(value);
  put(&word, sizeof(word));
}

void MessageWriter::tensor(const HostTensor& tensor) {
  const auto dtype = static_cast<std::uint8_t>(tensor.elements.dtype());
  const auto num_dims = static_cast<std::uint8_t>(tensor.shape.size());
  put(&dtype, sizeof(dtype));
  put(&num_dims, sizeof(num_dims));
  for (const std::int64_t dim : tensor.shape) put(&dim, sizeof(dim));
  tensors_.push_back(tensor);
}

void MessageWriter::append(const MessageWriter& other) {
  const std::span<const std::byte> bytes = other.bytes();
  put(bytes.data(), bytes.size());
  tensors_.insert(tensors_.end(), other.tensors_.begin(), other.tensors_.end());
}

std::span<const std::byte> MessageWriter::bytes() const {
  if (size_ > kMessageBytesMax || tensors_.size() > kMessageTensorsMax) {
    fail(Errc::invalid_argument,
         "a message has {} bytes and {} tensors; expected at most {} bytes and {} tensors: put "
         "large data into a HostTensor, whose elements don't count",
         size_, tensors_.size(), kMessageBytesMax, kMessageTensorsMax);
  }
  if (!large_.empty()) return large_;
  return std::span(small_).first(size_);
}

void MessageReader::fail_short(std::size_t size) const {
  fail(Errc::corrupt, "a message ends {} bytes too early", size - left_.size());
}

bool MessageReader::boolean() {
  std::uint8_t value = 0;
  get(&value, sizeof(value));
  if (value > 1) fail(Errc::corrupt, "a message has a bool of value {}", value);
  return value == 1;
}

std::size_t MessageReader::count(std::size_t element_bytes) {
  std::uint32_t value = 0;
  get(&value, sizeof(value));
  const std::size_t most =
      element_bytes == 0 ? std::max(left_.size(), kEmptyElementsMax) : left_.size() / element_bytes;
  if (value > most) {
    fail(Errc::corrupt, "a message has a list of {} elements, but only {} bytes follow", value,
         left_.size());
  }
  return value;
}

HostTensor MessageReader::tensor() {
  std::uint8_t dtype = 0;
  std::uint8_t num_dims = 0;
  get(&dtype, sizeof(dtype));
  get(&num_dims, sizeof(num_dims));
  if (dtype >= kDTypeCount || num_dims > kDimCountMax) {
    fail(Errc::corrupt, "a message has a tensor of dtype {} and {} dims", dtype, num_dims);
  }
  std::array<std::int64_t, kDimCountMax> dims{};
  std::int64_t elements = 1;
  for (int d = 0; d < num_dims; ++d) {
    std::int64_t dim = 0;
    get(&dim, sizeof(dim));
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) {
      fail(Errc::corrupt, "a message has a tensor whose dim {} is {}", d, dim);
    }
    dims[static_cast<std::size_t>(d)] = dim;
  }
  if (payloads_.empty()) fail(Errc::corrupt, "a message has fewer tensors than its bytes say");
  const MessagePayload& payload = payloads_.front();
  const TensorType type{static_cast<DType>(dtype), shape_of(std::span(dims).first(num_dims))};
  if (static_cast<std::uint64_t>(elements) > payload.bytes.size() ||
      static_cast<std::uint64_t>(type.bytes()) > payload.bytes.size()) {
    fail(Errc::corrupt, "a message has a tensor {} in {} bytes", type.to_string(),
         payload.bytes.size());
  }
  payloads_ = payloads_.subspan(1);
  return {ConstElementSpan(type.dtype, payload.bytes.data(), elements), type.shape, payload.owner};
}

void MessageReader::finish() const {
  if (left_.empty() && payloads_.empty()) return;
  fail(Errc::corrupt, "a message has {} bytes and {} tensors more than its type", left_.size(),
       payloads_.size());
}

}  // namespace weft
