#include "chips/pjrt/foreign_calls.hpp"

#include <cstring>
#include <map>
#include <mutex>

#include "chips/pjrt/abi/ffi_abi.hpp"
#include "spmd/stablehlo/stablehlo.hpp"

namespace weft::pjrt {
namespace {

constexpr std::string_view kTypeName = "weft.receiver";

using Receive = void (ForeignReceiver::*)(const ForeignCall& call);

/// The ids that plug-ins have given to the type of ForeignReceiver. The key is the plug-in's table
/// of functions, because a handler gets nothing else that identifies its plug-in.
class TypeIds {
 public:
  void add(const FfiApi* api) {
    const std::lock_guard lock(mutex_);
    ids_[api] = registering;
  }
  std::int64_t of(const FfiApi* api) const {
    const std::lock_guard lock(mutex_);
    return ids_.at(api);
  }
  /// The id from the plug-in with which this thread is registering handlers.
  static inline thread_local std::int64_t registering = 0;

 private:
  mutable std::mutex mutex_;
  std::map<const FfiApi*, std::int64_t> ids_;
};
TypeIds type_ids;

/// If the plug-in asks for the handler's version, answers with the plug-in's own version. Returns
/// whether the plug-in asked.
bool answers_version(const FfiFrame& frame) {
  for (auto* at = static_cast<Extension*>(frame.head.extension); at != nullptr; at = at->next) {
    if (at->type != FfiMetadataExtension::kType) continue;
    FfiMetadata& metadata = *reinterpret_cast<FfiMetadataExtension*>(at)->metadata;
    metadata.major = frame.api->major;
    metadata.minor = frame.api->minor;
    type_ids.add(frame.api);
    return true;
  }
  return false;
}

void* error_of(const FfiFrame& frame, const char* message) {
  constexpr int kInternal = 13;
  FfiErrorArgs arguments{{sizeof(FfiErrorArgs), nullptr}, message, kInternal};
  return frame.api->create_error(&arguments);
}

std::int64_t number_of(const FfiFrame& frame, std::string_view name) {
  for (std::int64_t i = 0; i < frame.attributes.size; ++i) {
    const FfiText& found = *frame.attributes.names[i];
    if (std::string_view(found.begin, found.size) != name) continue;
    std::int64_t number = 0;
    std::memcpy(&number, static_cast<const FfiScalar*>(frame.attributes.values[i])->value,
                sizeof number);
    return number;
  }
  fail(Errc::corrupt, "a call of a program has no attribute \"{}\"", name);
}

ForeignCall call_of(const FfiFrame& frame, std::string_view number) {
  ForeignCall call;
  for (std::int64_t i = 0; i < frame.operands.size; ++i) {
    call.operands.push_back(static_cast<const std::byte*>(frame.operands.buffers[i]->data));
  }
  for (std::int64_t i = 0; i < frame.results.size; ++i) {
    call.results.push_back(static_cast<std::byte*>(frame.results.buffers[i]->data));
  }
  call.number = number_of(frame, number);
  return call;
}

ForeignReceiver& receiver_of(const FfiFrame& frame) {
  const std::int64_t id = type_ids.of(frame.api);
  FfiContextArgs arguments{{sizeof(FfiContextArgs), nullptr}, frame.context, &id, nullptr};
  if (frame.api->get_user_data(&arguments) != nullptr || arguments.data == nullptr) {
    fail(Errc::corrupt, "a run of a program has no receiver of its calls");
  }
  return *static_cast<ForeignReceiver*>(arguments.data);
}

/// Handles the calls of a target: passes each one to `receive`. `kNumber` is the name of the
/// attribute that has the call's number.
template <Receive receive, const std::string_view& kNumber>
void* handle(FfiFrame* frame) {
  if (answers_version(*frame) || frame->stage != FfiFrame::kExecute) return nullptr;
  try {
    (receiver_of(*frame).*receive)(call_of(*frame, kNumber));
    return nullptr;
  } catch (const std::exception& error) {
    return error_of(*frame, error.what());
  }
}
constexpr std::string_view kCollectiveNumber = "collective";
constexpr std::string_view kOpNumber = "op";

void register_handler(const Plugin& plugin, const FfiExtension& ffi, std::string_view target,
                      void* (*handler)(FfiFrame*)) {
  constexpr std::string_view kPlatform = "Host";
  RegisterHandlerArgs arguments{};
  arguments.head.struct_size = sizeof arguments;
  arguments.target = target.data();
  arguments.target_size = target.size();
  arguments.handler = reinterpret_cast<void*>(handler);
  arguments.platform = kPlatform.data();
  arguments.platform_size = kPlatform.size();
  plugin.check(ffi.register_handler(&arguments), "PJRT_FFI_Register_Handler");
}

const FfiExtension& ffi_of(const Plugin& plugin) {
  const Extension* const ffi = plugin.extension(kFfiExtension);
  if (ffi == nullptr || !plugin.has(kContextCreate)) {
    fail(Errc::unavailable,
         "{}: it can't call functions of weft from programs, which collectives need; install "
         "another plug-in",
         plugin.name());
  }
  return *reinterpret_cast<const FfiExtension*>(ffi);
}

/// Registers the type and the handlers, unless this plug-in already has them. Returns the type's
/// id.
std::int64_t register_with(const Plugin& plugin) {
  static std::mutex mutex;
  static std::map<const Plugin*, std::int64_t> registered;
  const std::lock_guard lock(mutex);
  const auto found = registered.find(&plugin);
  if (found != registered.end()) return found->second;
  const FfiExtension& ffi = ffi_of(plugin);
  static constexpr FfiTypeInfo kInfo{.destroy = [](void*) {}, .more = {}};
  Block<RegisterTypeArgs> type;
  type->name = kTypeName.data();
  type->name_size = kTypeName.size();
  type->info = &kInfo;
  plugin.check(ffi.register_type(&type), "PJRT_FFI_TypeID_Register");
  TypeIds::registering = type->type_id;
  register_handler(plugin, ffi, kCollectiveTarget,
                   handle<&ForeignReceiver::on_collective, kCollectiveNumber>);
  register_handler(plugin, ffi, kCustomOpTarget, handle<&ForeignReceiver::on_custom_op, kOpNumber>);
  return registered[&plugin] = type->type_id;
}

}  // namespace

void register_foreign_calls(const Plugin& plugin) { register_with(plugin); }

ForeignContext::ForeignContext(std::shared_ptr<const Client> client, ForeignReceiver& receiver)
    : client_(std::move(client)) {
  const Plugin& plugin = client_->plugin();
  const std::int64_t type = register_with(plugin);
  Block<ContextArgs> context;
  plugin.call(kContextCreate, context);
  handle_ = context->context;
  Block<AddUserDataArgs> data;
  data->context = handle_;
  data->type_id = type;
  data->data = &receiver;
  plugin.check(ffi_of(plugin).add_user_data(&data), "PJRT_FFI_UserData_Add");
}

ForeignContext::~ForeignContext() {
  if (handle_ != nullptr) client_->plugin().destroy(kContextDestroy, handle_);
}

}  // namespace weft::pjrt
