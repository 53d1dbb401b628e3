#include "actors/message/tensor_bytes.hpp"

namespace weft {

std::size_t bytes_of(const HostTensor& tensor) {
  return static_cast<std::size_t>(TensorType{tensor.elements.dtype(), tensor.shape}.bytes());
}

std::vector<MessagePayload> payloads_of(const MessageWriter& message) {
  std::vector<MessagePayload> payloads;
  for (const HostTensor& tensor : message.tensors()) {
    payloads.push_back(
        {.bytes = {tensor.elements.data(), bytes_of(tensor)}, .owner = tensor.owner});
  }
  return payloads;
}

}  // namespace weft
