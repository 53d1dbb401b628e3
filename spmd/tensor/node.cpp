#include "spmd/tensor/node.hpp"

#include <weft/tensor/error.hpp>

namespace weft {

std::string TensorNode::label() const {
  return name.empty() ? type.to_string() : fmt::format("'{}' {}", name, type.to_string());
}

Sharding TensorNode::input_sharding() const {
  if (type.num_elements() == 1 || kind == InputKind::runtime_scalar) return Sharding::closed();
  if (const auto* buffer = std::get_if<BufferPtr>(&storage)) {
    Sharding sharding = (*buffer)->sharding();
    sharding.open_mask = 0;
    return sharding;
  }
  return marked.value_or(Sharding::open(type.shape.size()));
}

Binding binding_of(const TensorNode& node) {
  if (const auto* buffer = std::get_if<BufferPtr>(&node.storage)) {
    // use_count() is exact, because only tensors and holds have references, which only this thread
    // copies or drops.
    const bool is_of_one_tensor = buffer->use_count() == 1 + (*buffer)->num_holds();
    return BoundBuffer{*buffer, is_of_one_tensor};
  }
  if (const auto* source = std::get_if<SourcePtr>(&node.storage)) return *source;
  return std::get<HostData>(node.storage);
}

bool is_first_value(const Binding& value) {
  const auto* source = std::get_if<SourcePtr>(&value);
  return std::holds_alternative<HostData>(value) ||
         (source != nullptr && (*source)->is_first_value());
}

NodePtr host_node(const TensorType& type, InputKind kind, std::string name,
                  std::span<const std::byte> elements, const std::source_location& loc) {
  WEFT_CHECK(static_cast<std::int64_t>(elements.size()) == type.bytes(), elements.size(),
             type.to_string());
  auto node = std::make_shared<TensorNode>();
  node->type = type;
  node->kind = kind;
  node->name = std::move(name);
  node->loc = loc;
  node->storage = std::make_shared<const std::vector<std::byte>>(elements.begin(), elements.end());
  return node;
}

NodePtr source_node(const TensorType& type, InputKind kind, std::string name, SourcePtr source) {
  auto node = std::make_shared<TensorNode>();
  node->type = type;
  node->kind = kind;
  node->name = std::move(name);
  node->storage = std::move(source);
  return node;
}

NodePtr data_node(BufferPtr buffer, const std::source_location& loc) {
  auto node = std::make_shared<TensorNode>();
  node->type = buffer->type();
  node->loc = loc;
  node->storage = std::move(buffer);
  return node;
}

std::string file_line(const std::source_location& loc) {
  const std::string_view path = loc.file_name();
  return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), loc.line());
}

std::string to_string(const RunSite& site) {
  if (site.loc.line() == 0) return "";
  return fmt::format("the {} at {}", site.function.empty() ? "read" : site.function,
                     file_line(site.loc));
}

bool is_read(std::string_view site) { return site.starts_with("the read at "); }

void fail_undefined(const std::optional<std::source_location>& loc) {
  fail(Errc::invalid_argument,
       "a tensor without a value (default-constructed) is used; assign one to it first{}",
       loc ? fmt::format(" (at {})", file_line(*loc)) : "");
}

const NodePtr& node_of(const Tensor& tensor, std::optional<std::source_location> loc) {
  if (!tensor.defined()) fail_undefined(loc);
  return tensor.node();
}

}  // namespace weft
