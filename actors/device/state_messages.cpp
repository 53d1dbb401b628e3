#include "actors/device/state_messages.hpp"

#include <algorithm>

namespace weft {

std::vector<StateHashes> to_messages(const StateHash& hash, int worker, std::uint64_t generation) {
  const std::size_t total = hash.tensors().size();
  const auto chips = static_cast<std::size_t>(hash.num_chips());
  const std::size_t most = std::max<std::size_t>(kHashesPerMessage / chips, 1);
  std::vector<StateHashes> messages;
  for (std::size_t tensor = 0; tensor < total; ++tensor) {
    if (tensor % most == 0) {
      messages.push_back(
          {.worker = worker, .generation = generation, .step = hash.step(), .num_tensors = total});
    }
    StateHashes& message = messages.back();
    message.tensors.push_back(hash.tensors()[tensor].name);
    for (int chip = 0; chip < hash.num_chips(); ++chip) {
      message.pieces.push_back(hash.piece(tensor, chip));
      message.hashes.push_back(hash.hash(tensor, chip));
    }
  }
  return messages;
}

}  // namespace weft
