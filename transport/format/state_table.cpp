#include "transport/format/state_table.hpp"

#include <weft_schema/state_generated.h>

#include "transport/format/tensor_fields.hpp"

namespace weft {

std::vector<std::byte> encode_state_table(std::span<const StateEntry> state) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::StateTensor>> tensors;
  for (const StateEntry& entry : state) {
    const auto name = builder.CreateString(entry.name);
    const fb::TensorType type = write_type(entry.type);
    const fb::Sharding sharding = write_sharding(entry.sharding);
    tensors.push_back(fb::CreateStateTensor(builder, name, &type, &sharding, entry.offset,
                                            static_cast<fb::StateKind>(entry.kind)));
  }
  fb::FinishStateTableBuffer(builder, fb::CreateStateTable(builder, builder.CreateVector(tensors)));
  return make_envelope(kStateTableFormat, body_of(builder));
}

std::vector<StateEntry> decode_state_table(std::span<const std::byte> bytes, const Mesh& mesh) {
  const std::string_view what = kStateTableFormat.name;
  const auto body = open_envelope(kStateTableFormat, bytes);
  verify_body(body, fb::VerifyStateTableBuffer, what);
  std::vector<StateEntry> state;
  for (const fb::StateTensor* tensor : *fb::GetStateTable(body.data())->tensors()) {
    if (tensor->kind() > fb::StateKind::MAX) {
      fail(Errc::corrupt, "{}: '{}' has kind {}", what, tensor->name()->str(),
           static_cast<int>(tensor->kind()));
    }
    state.push_back({.name = tensor->name()->str(),
                     .type = read_type(*tensor->type(), what),
                     .sharding = read_sharding(*tensor->sharding(), mesh, what),
                     .offset = tensor->offset(),
                     .kind = static_cast<StateKind>(tensor->kind())});
  }
  return state;
}

}  // namespace weft
