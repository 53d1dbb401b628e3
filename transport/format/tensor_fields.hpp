#pragma once
/// TensorFields: reads and writes fields that several formats share: tensor types, shardings,
/// offsets and sizes of shards, and loaders. Reading throws corrupt unless every value is in range.
/// The message begins with the argument `what`.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft_schema/command_generated.h>
#include <weft_schema/loader_generated.h>
#include <weft_schema/tensor_generated.h>
#include <weft/sharding/mesh.hpp>
#include <weft/tensor/error.hpp>
#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"
#include "transport/format/stored_command.hpp"
#include "transport/format/stored_loader.hpp"

namespace weft {

/// Returns the elements of a vector of numbers or structs. Throws corrupt if the elements aren't
/// aligned, because FlatBuffers' verifier checks only the alignment of the vector's length.
template <typename T>
std::span<const T> elements(const flatbuffers::Vector<T>& vector, std::string_view what) {
  if (vector.size() == 0) return {};  // an empty vector's address may be anything
  if (reinterpret_cast<std::uintptr_t>(vector.Data()) % alignof(T) != 0) {
    fail(Errc::corrupt, "{}: a vector's elements aren't aligned to {}", what, alignof(T));
  }
  return {reinterpret_cast<const T*>(vector.Data()), vector.size()};
}
template <typename T>
std::span<const T> elements(const flatbuffers::Vector<const T*>& vector, std::string_view what) {
  return elements(reinterpret_cast<const flatbuffers::Vector<T>&>(vector), what);
}
template <typename T>
std::vector<T> read_numbers(const flatbuffers::Vector<T>& vector, std::string_view what) {
  const std::span numbers = elements(vector, what);
  return {numbers.begin(), numbers.end()};
}

/// Reads how many hosts each axis of a mesh has. `stored` is null for a mesh on one host.
std::vector<std::int64_t> read_dcn_shape(const flatbuffers::Vector<std::int64_t>* stored,
                                         std::string_view what);

fb::TensorType write_type(const TensorType& type);
TensorType read_type(const fb::TensorType& type, std::string_view what);

fb::Sharding write_sharding(const Sharding& sharding);
/// Reads a sharding. Throws unless it has only atoms of the mesh, and each atom at most once in all
/// dims.
Sharding read_sharding(const fb::Sharding& stored, const Mesh& mesh, std::string_view what);

/// Reads offsets or sizes: one value for each dim of `type`, none negative.
Shape read_dims(const flatbuffers::Vector<std::int64_t>& dims, const TensorType& type,
                std::string_view what);

/// Returns why a tensor of this type can't have a shard of the sizes `dims` at `offsets`;
/// std::nullopt if it can.
std::optional<std::string> shard_fault(const TensorType& type, const Shape& offsets,
                                       const Shape& dims);

flatbuffers::Offset<flatbuffers::Vector<std::int64_t>> write_dims(
    flatbuffers::FlatBufferBuilder& builder, std::span<const std::int64_t> dims);
std::vector<std::string> read_strings(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>& strings);

using LoaderTables = flatbuffers::Vector<flatbuffers::Offset<fb::StoredLoader>>;
/// Writes loaders. Returns null if there are none.
flatbuffers::Offset<LoaderTables> write_loaders(flatbuffers::FlatBufferBuilder& builder,
                                                std::span<const StoredLoader> loaders);
/// Reads loaders. `stored` may be null.
std::vector<StoredLoader> read_loaders(const LoaderTables* stored);

using CommandTables = flatbuffers::Vector<flatbuffers::Offset<fb::StoredCommand>>;
/// Writes commands. Returns null if there are none.
flatbuffers::Offset<CommandTables> write_commands(flatbuffers::FlatBufferBuilder& builder,
                                                  std::span<const StoredCommand> commands);
/// Reads commands. `stored` may be null.
std::vector<StoredCommand> read_commands(const CommandTables* stored);

/// Returns the bytes that a finished builder has written.
std::span<const std::byte> body_of(const flatbuffers::FlatBufferBuilder& builder);
/// Throws corrupt unless `verify`, the generated verifier of a root table, accepts the body.
template <typename Verify>
void verify_body(std::span<const std::byte> body, Verify verify, std::string_view what) {
  // The number of tables is limited only by the body's size, since each table has at least the 4
  // bytes of its offset. FlatBuffers' default limit of a million tables is too low.
  constexpr flatbuffers::uoffset_t kDepthMax = 64;
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(body.data()), body.size(),
                                 kDepthMax,
                                 static_cast<flatbuffers::uoffset_t>(body.size() / 4 + 1));
  if (!verify(verifier)) fail(Errc::corrupt, "{}: its body isn't a FlatBuffer of its kind", what);
}

}  // namespace weft
