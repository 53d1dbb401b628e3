#pragma once
/// The bytes of the tensors that messages have.

#include <cstddef>
#include <vector>

#include <weft/message/bytes.hpp>

namespace weft {

/// Returns the size of the tensor's elements.
std::size_t bytes_of(const HostTensor& tensor);
/// Returns the tensors of a message that was written, as its reader gets them.
std::vector<MessagePayload> payloads_of(const MessageWriter& message);

}  // namespace weft
