#include "transport/format/state_table.hpp"

#include <weft_schema/state_generated.h>

#include "transport/format/tensor_fields.hpp"

namespace weft {

std::vector<std::byte> encode_state_table(std::span<const StateEntry> tensors,
                                          const std::vector<StoredLoader>& loaders,
                                          std::span<const CommandMark> commands) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::StateTensor>> stored;
  for (const StateEntry& entry : tensors) {
    const auto name = builder.CreateString(entry.name);
    const fb::TensorType type = write_type(entry.type);
    const fb::Sharding sharding = write_sharding(entry.sharding);
    stored.push_back(fb::CreateStateTensor(builder, name, &type, &sharding, entry.offset,
                                           static_cast<fb::StateKind>(entry.kind)));
  }
  const auto tensor_list = builder.CreateVector(stored);
  const auto loader_list = write_loaders(builder, loaders);
  flatbuffers::Offset<flatbuffers::Vector<const fb::CommandMark*>> marks;
  if (!commands.empty()) {
    std::vector<fb::CommandMark> list;
    for (const CommandMark& mark : commands) list.emplace_back(mark.number, mark.step);
    marks = builder.CreateVectorOfStructs(list);
  }
  fb::FinishStateTableBuffer(builder,
                             fb::CreateStateTable(builder, tensor_list, loader_list, marks));
  return make_envelope(kStateTableFormat, body_of(builder));
}

StateTable decode_state_table(std::span<const std::byte> bytes, const Mesh& mesh) {
  const std::string_view what = kStateTableFormat.name;
  const auto body = open_envelope(kStateTableFormat, bytes);
  verify_body(body, fb::VerifyStateTableBuffer, what);
  const fb::StateTable& stored = *fb::GetStateTable(body.data());
  StateTable table{.loaders = read_loaders(stored.loaders())};
  if (stored.commands() != nullptr) {
    for (const fb::CommandMark& mark : elements(*stored.commands(), what)) {
      table.commands.push_back({mark.number(), mark.step()});
    }
  }
  for (const fb::StateTensor* tensor : *stored.tensors()) {
    if (tensor->kind() > fb::StateKind::MAX) {
      fail(Errc::corrupt, "{}: '{}' has kind {}", what, tensor->name()->str(),
           static_cast<int>(tensor->kind()));
    }
    table.tensors.push_back({.name = tensor->name()->str(),
                             .type = read_type(*tensor->type(), what),
                             .sharding = read_sharding(*tensor->sharding(), mesh, what),
                             .offset = tensor->offset(),
                             .kind = static_cast<StateKind>(tensor->kind())});
  }
  return table;
}

}  // namespace weft
