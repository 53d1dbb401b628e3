#include "chips/pjrt/buffer.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include <weft/tensor/error.hpp>

#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::pred: return ElementType::pred;
    case DType::i8: return ElementType::s8;
    case DType::u8: return ElementType::u8;
    case DType::i32: return ElementType::s32;
    case DType::u32: return ElementType::u32;
    case DType::i64: return ElementType::s64;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    case DType::f32: return ElementType::f32;
    case DType::f64: return ElementType::f64;
  }
  fail(Errc::invalid_argument, "dtype {} has no element type of PJRT", to_string(dtype));
}

Event::Event(std::shared_ptr<const Client> client, void* handle)
    : client_(std::move(client)), handle_(handle) {}

Event::Event(Event&& other) noexcept
    : client_(std::move(other.client_)), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) client_->plugin().destroy(kEventDestroy, handle_);
}

bool Event::is_ready() const {
  if (handle_ == nullptr) return true;
  Block<EventReadyArgs> arguments;
  arguments->event = handle_;
  client_->plugin().call(kEventIsReady, arguments);
  return arguments->is_ready;
}

void Event::await() {
  if (handle_ == nullptr) return;
  const Event ended = std::move(*this);
  Block<EventArgs> arguments;
  arguments->event = ended.handle_;
  ended.client_->plugin().call(kEventAwait, arguments);
}

Buffer::Buffer(std::shared_ptr<const Client> client, void* handle)
    : client_(std::move(client)), handle_(handle) {}

Buffer::Buffer(Buffer&& other) noexcept
    : client_(std::move(other.client_)), handle_(std::exchange(other.handle_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(handle_, other.handle_);
  return *this;
}

Buffer::~Buffer() {
  if (handle_ != nullptr) client_->plugin().destroy(kBufferDestroy, handle_);
}

std::byte* Buffer::address() const {
  Block<AddressArgs> arguments;
  arguments->buffer = handle_;
  client_->plugin().call(kUnsafePointer, arguments);
  return reinterpret_cast<std::byte*>(arguments->address);
}

void Buffer::download(std::span<std::byte> to) const {
  const Plugin& plugin = client_->plugin();
  Block<ToHostArgs> size;
  size->buffer = handle_;
  plugin.call(kToHost, size);
  if (size->size != to.size()) {
    fail(Errc::invalid_argument, "{}: a buffer has {} bytes: expected {}", plugin.name(),
         size->size, to.size());
  }
  Block<ToHostArgs> arguments;
  arguments->buffer = handle_;
  arguments->to = to.data();
  arguments->size = to.size();
  plugin.call(kToHost, arguments);
  Event(client_, arguments->event).await();
}

Event Buffer::begin_download(std::span<std::byte> to, int rank) const {
  std::array<std::int64_t, kDimCountMax> minor_to_major{};
  for (int dim = 0; dim < rank; ++dim) {
    minor_to_major[static_cast<std::size_t>(dim)] = rank - 1 - dim;
  }
  HostLayout layout{};
  layout.head.struct_size = sizeof layout;
  layout.tiled_head.struct_size = offsetof(HostLayout, type) - offsetof(HostLayout, tiled_head);
  layout.minor_to_major = minor_to_major.data();
  layout.rank = static_cast<std::size_t>(rank);
  Block<ToHostArgs> arguments;
  arguments->buffer = handle_;
  arguments->layout = &layout;
  arguments->to = to.data();
  arguments->size = to.size();
  client_->plugin().call(kToHost, arguments);
  return {client_, arguments->event};
}

}  // namespace weft::pjrt
