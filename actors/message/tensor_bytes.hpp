#pragma once
/// Returns the bytes of messages' tensors.

#include <cstddef>
#include <vector>

#include <weft/message/bytes.hpp>

namespace weft {

/// Returns the size of the tensor's elements in bytes.
std::size_t bytes_of(const HostTensor& tensor);
/// Returns the tensors of a written message in the form in which its reader gets them.
std::vector<MessagePayload> payloads_of(const MessageWriter& message);

}  // namespace weft
