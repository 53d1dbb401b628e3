#include "transport/format/tensor_fields.hpp"

#include <algorithm>
#include <bit>

namespace weft {
namespace {

static_assert(static_cast<int>(fb::DType::MIN) == static_cast<int>(DType::pred));
static_assert(static_cast<int>(fb::DType::MAX) == static_cast<int>(DType::u8));
static_assert(static_cast<int>(fb::ReduceKind::MAX) == static_cast<int>(ReduceKind::min));

Shape read_shape(std::span<const std::int64_t> sizes, std::string_view what) {
  try {
    return Shape(sizes);
  } catch (const Error& error) {
    fail(Errc::corrupt, "{}: {}", what, error.what());
  }
}

AtomList read_atoms(std::uint64_t bits, const Mesh& mesh, std::string_view what) {
  const AtomList atoms = AtomList::from_bits(bits);
  for (int i = 0; i < atoms.size(); ++i) {
    if (atoms[i] < 1 || atoms[i] > mesh.num_atoms()) {
      fail(Errc::corrupt, "{}: a sharding names atom {} of {}", what, atoms[i], mesh.num_atoms());
    }
  }
  return atoms;
}

}  // namespace

std::vector<std::int64_t> read_dcn_shape(const flatbuffers::Vector<std::int64_t>* stored,
                                         std::string_view what) {
  if (stored == nullptr) return {};
  return read_numbers(*stored, what);
}

fb::TensorType write_type(const TensorType& type) {
  std::array<std::int64_t, kDimCountMax> dims{};
  std::ranges::copy(type.shape, dims.begin());
  return {dims, static_cast<std::uint8_t>(type.shape.size()), static_cast<fb::DType>(type.dtype)};
}

TensorType read_type(const fb::TensorType& type, std::string_view what) {
  if (type.dtype() > fb::DType::MAX) {
    fail(Errc::corrupt, "{}: there is no dtype {}", what, static_cast<int>(type.dtype()));
  }
  if (type.dim_count() > kDimCountMax) {
    fail(Errc::corrupt, "{}: {} dims; at most {} are possible", what, type.dim_count(),
         kDimCountMax);
  }
  return {static_cast<DType>(type.dtype()),
          read_shape({type.dims()->data(), type.dim_count()}, what)};
}

fb::Sharding write_sharding(const Sharding& sharding) {
  std::array<std::uint64_t, kDimCountMax> dims{};
  std::ranges::transform(sharding.dims, dims.begin(), &AtomList::bits);
  return {dims,
          sharding.provenance,
          sharding.unreduced,
          sharding.replicated,
          sharding.open_mask,
          static_cast<fb::ReduceKind>(sharding.reduce_kind)};
}

Sharding read_sharding(const fb::Sharding& stored, const Mesh& mesh, std::string_view what) {
  const unsigned atoms = (2U << mesh.num_atoms()) - 2;
  if (((stored.unreduced() | stored.replicated()) & ~atoms) != 0 ||
      stored.open_mask() >> kDimCountMax != 0) {
    fail(Errc::corrupt, "{}: a sharding's masks {:#x}, {:#x} and {:#x} have bits of no atom or dim",
         what, stored.unreduced(), stored.replicated(), stored.open_mask());
  }
  if (stored.reduce_kind() > fb::ReduceKind::MAX) {
    fail(Errc::corrupt, "{}: there is no reduction {}", what,
         static_cast<int>(stored.reduce_kind()));
  }
  Sharding sharding{.dims = {},
                    .provenance = stored.provenance(),
                    .unreduced = stored.unreduced(),
                    .replicated = stored.replicated(),
                    .open_mask = stored.open_mask(),
                    .reduce_kind = static_cast<ReduceKind>(stored.reduce_kind())};
  std::ranges::transform(*stored.dims(), sharding.dims.begin(),
                         [&](std::uint64_t bits) { return read_atoms(bits, mesh, what); });
  int atom_count = 0;
  for (const AtomList& list : sharding.dims) atom_count += list.size();
  if (atom_count != std::popcount(sharding.used())) {
    fail(Errc::corrupt, "{}: a sharding's dims contain an atom twice", what);
  }
  return sharding;
}

Shape read_dims(const flatbuffers::Vector<std::int64_t>& dims, const TensorType& type,
                std::string_view what) {
  if (dims.size() != static_cast<std::size_t>(type.shape.size())) {
    fail(Errc::corrupt, "{}: {} entries for the {} dims of {}", what, dims.size(),
         type.shape.size(), type.to_string());
  }
  return read_shape(elements(dims, what), what);
}

std::optional<std::string> shard_fault(const TensorType& type, const Shape& offsets,
                                       const Shape& dims) {
  if (offsets.size() != type.shape.size() || dims.size() != type.shape.size()) {
    return fmt::format("a shard of {} with {} offsets and {} dims", type.to_string(),
                       offsets.size(), dims.size());
  }
  for (int d = 0; d < dims.size(); ++d) {
    if (offsets[d] < 0 || dims[d] < 0 || dims[d] > type.shape[d] ||
        offsets[d] > type.shape[d] - dims[d]) {
      return fmt::format("a shard of size {} at {} doesn't fit in dim {} of {}", dims[d],
                         offsets[d], d, type.to_string());
    }
  }
  return std::nullopt;
}

flatbuffers::Offset<flatbuffers::Vector<std::int64_t>> write_dims(
    flatbuffers::FlatBufferBuilder& builder, std::span<const std::int64_t> dims) {
  return builder.CreateVector(dims.data(), dims.size());
}

std::vector<std::string> read_strings(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>& strings) {
  std::vector<std::string> result;
  result.reserve(strings.size());
  for (const auto* text : strings) result.push_back(text->str());
  return result;
}

std::span<const std::byte> body_of(const flatbuffers::FlatBufferBuilder& builder) {
  return std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
}

}  // namespace weft
