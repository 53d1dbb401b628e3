#include "chips/accelerator/device_copies.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace weft {

DeviceCopies::DeviceCopies(std::shared_ptr<const pjrt::Client> client, std::size_t device,
                           std::byte* arena)
    : client_(std::move(client)), device_(device), arena_(arena) {}

DeviceCopies::Held DeviceCopies::bind(std::uint64_t offset, const TensorType& type) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(offset);
    if (found != blocks_.end() && found->second.type == type) return found->second.buffer;
  }
  const std::byte* bytes = arena_ + offset;
  std::vector<std::byte> newer;
  if (newer_block_at(offset).second.buffer != nullptr) {
    newer.resize(static_cast<std::size_t>(type.bytes()));
    read(offset, newer);
    bytes = newer.data();
  }
  Held buffer;
  try {
    buffer = std::make_shared<const pjrt::Buffer>(
        client_->from_host(device_, bytes, type, pjrt::HostMemory::until_transfer));
  } catch (const pjrt::PluginError& error) {
    fail_for_memory(error, *client_, device_, "a tensor " + type.to_string(), type.bytes());
  }
  if (newer.empty() && type.bytes() > 0) {
    const std::lock_guard lock(mutex_);
    erase_overlapping(offset, static_cast<std::size_t>(type.bytes()));
    blocks_[offset] = {.type = type, .buffer = buffer};
  }
  return buffer;
}

void DeviceCopies::put(std::uint64_t offset, const TensorType& type, pjrt::Buffer buffer,
                       bool is_version) {
  if (type.bytes() == 0) return;  // another block may begin at the same offset
  const std::lock_guard lock(mutex_);
  erase_overlapping(offset, static_cast<std::size_t>(type.bytes()));
  blocks_[offset] = {.type = type,
                     .buffer = std::make_shared<const pjrt::Buffer>(std::move(buffer)),
                     .is_newer = true,
                     .is_version = is_version};
}

void DeviceCopies::forget(std::uint64_t offset, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  erase_overlapping(offset, bytes);
}

void DeviceCopies::erase_overlapping(std::uint64_t offset, std::size_t bytes) {
  auto at = blocks_.lower_bound(offset);
  if (at != blocks_.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second.bytes() > offset) at = before;
  }
  while (at != blocks_.end() && at->first < offset + bytes) at = blocks_.erase(at);
}

bool DeviceCopies::is_version(std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(offset);
  return found != blocks_.end() && found->second.is_version;
}

void DeviceCopies::supersede(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(offset);
  if (found != blocks_.end()) found->second.is_version = false;
}

/// Returns the block that contains the byte at `offset` and is newer than the arena. If there is
/// none, the returned block has no buffer.
std::pair<std::uint64_t, DeviceCopies::Block> DeviceCopies::newer_block_at(
    std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(offset);
  if (after == blocks_.begin()) return {};
  const auto& [begin, block] = *std::prev(after);
  if (!block.is_newer || offset >= begin + block.bytes()) return {};
  return {begin, block};
}

void DeviceCopies::read(std::uint64_t offset, std::span<std::byte> to) const {
  const auto [begin, block] = newer_block_at(offset);
  if (block.buffer == nullptr) {
    if (!to.empty()) std::memcpy(to.data(), arena_ + offset, to.size());
    return;
  }
  if (begin == offset && to.size() == block.bytes()) {
    block.buffer->begin_download(to, block.type.shape.size()).await();
    return;
  }
  std::vector<std::byte> whole(block.bytes());
  block.buffer->begin_download(whole, block.type.shape.size()).await();
  std::memcpy(to.data(), whole.data() + (offset - begin), to.size());
}

DeviceCopies::Landing DeviceCopies::land() {
  std::vector<std::pair<std::uint64_t, Block>> versions;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(blocks_, std::back_inserter(versions),
                         [](const auto& block) { return block.second.is_version; });
  }
  Landing landing;
  landing.copies_ = this;
  for (const auto& [offset, block] : versions) {
    landing.versions_.emplace_back(offset, block.buffer);
    landing.bytes_ += block.bytes();
    landing.events_.push_back(
        block.buffer->begin_download({arena_ + offset, block.bytes()}, block.type.shape.size()));
  }
  return landing;
}

DeviceCopies::Landing::~Landing() {
  for (pjrt::Event& event : events_) {
    try {
      event.await();
    } catch (const pjrt::PluginError&) {
      // The copy has ended, and the owner of the arena needs to know no more.
    }
  }
}

void DeviceCopies::Landing::finish() {
  for (pjrt::Event& event : events_) event.await();
  events_.clear();
  if (copies_ == nullptr) return;
  const std::lock_guard lock(copies_->mutex_);
  for (const auto& [offset, buffer] : versions_) {
    const auto found = copies_->blocks_.find(offset);
    if (found == copies_->blocks_.end() || found->second.buffer != buffer) continue;
    found->second.is_newer = found->second.is_version = false;
  }
  versions_.clear();
}

void fail_for_memory(const pjrt::PluginError& error, const pjrt::Client& client, std::size_t device,
                     std::string_view what, std::int64_t bytes) {
  if (error.code() != Errc::no_space) throw error;
  std::string there = "which doesn't say how much it has";
  try {
    if (const auto memory = client.memory(device); memory && memory->limit_bytes) {
      there =
          fmt::format("of whose {} bytes {} are used", *memory->limit_bytes, memory->used_bytes);
    }
  } catch (const pjrt::PluginError&) {
    // The lack of memory is the error to report.
  }
  fail(Errc::no_space,
       "{} needs {} bytes on device {} ({}), {}: use more chips, shard more tensors, or take "
       "smaller batches: {}",
       what, bytes, client.devices().at(device).id, client.devices().at(device).kind, there,
       error.what());
}

}  // namespace weft
