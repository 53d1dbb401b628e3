#include "tests/support/fake_pjrt/fake_pjrt.hpp"

#include <cstring>

#include "chips/pjrt/abi/client_abi.hpp"
#include "tests/support/fake_pjrt/fake_objects.hpp"
#include "tests/support/fake_pjrt/fake_run.hpp"

namespace weft::testing {

using namespace pjrt;

FakeState& state() {
  static auto& all = *new FakeState;  // must outlive objects that the process never destroys
  return all;
}

namespace {

void initialize(InitializeArgs&) {}

void attributes(AttributesArgs& args) {
  static constexpr std::string_view kName = "xla_version";
  static NamedValue value{};
  value.head.struct_size = sizeof(NamedValue);
  value.name = kName.data();
  value.name_size = kName.size();
  value.kind = NamedValue::integer;
  value.integer_value = 2;
  value.size = 1;
  args.attributes = &value;
  args.count = 1;
}

void create_client(ClientCreateArgs& args) {
  if (state().plugin.on_client) state().plugin.on_client();
  auto client = std::make_unique<FakeClient>();
  std::size_t count = state().plugin.device_count;
  for (const NamedValue& option : std::span(args.options, args.option_count)) {
    const std::string_view name(option.name, option.name_size);
    if (name != "cpu_device_count" || option.kind != NamedValue::integer) {
      throw FakeError(kInvalidArgument, "Unexpected option name passed: " + std::string(name));
    }
    count = static_cast<std::size_t>(option.integer_value);
  }
  for (std::size_t i = 0; i < count; ++i) client->devices.push_back({static_cast<int>(i)});
  for (FakeDevice& device : client->devices) client->handles.push_back(&device);
  args.client = state().objects.add(std::move(client));
}

void give_text(ClientTextArgs& args, std::string_view text) {
  state().objects.get<FakeClient>(args.client, "client");
  args.text = text.data();
  args.size = text.size();
}
void platform_name(ClientTextArgs& args) { give_text(args, state().plugin.platform); }
void platform_version(ClientTextArgs& args) { give_text(args, "fake 1"); }

void devices(DevicesArgs& args) {
  const auto& client = state().objects.get<FakeClient>(args.client, "client");
  args.devices = client.handles.data();
  args.count = client.handles.size();
}

/// Returns the device itself, because a device of the fake is also its own description.
void description(DescriptionArgs& args) { args.description = args.device; }
void device_id(DeviceIdArgs& args) { args.id = static_cast<FakeDevice*>(args.description)->id; }
void device_kind(DeviceKindArgs& args) {
  static constexpr std::string_view kKind = "fake chip";
  args.kind = kKind.data();
  args.size = kKind.size();
}

void memory_stats(MemoryStatsArgs& args) {
  if (state().plugin.memory_limit_bytes == 0) throw FakeError(kUnimplemented, "no statistics");
  args.used_bytes = 1024;
  args.limit_bytes = {state().plugin.memory_limit_bytes, true};
}

void event_ready(EventReadyArgs& args) {
  args.is_ready = state().objects.get<FakeEvent>(args.event, "event").is_ready;
}
void event_error(EventArgs& args) { state().objects.get<FakeEvent>(args.event, "event"); }
void destroy_event(EventArgs& args) { state().objects.destroy<FakeEvent>(args.event, "event"); }
void destroy_client(ClientArgs& args) {
  state().objects.destroy<FakeClient>(args.client, "client");
}
void destroy_buffer(BufferArgs& args) {
  state().objects.destroy<FakeBuffer>(args.buffer, "buffer");
}
void destroy_executable(ExecutableArgs& args) {
  state().objects.destroy<FakeExecutable>(args.executable, "executable");
}

std::size_t held() {
  const std::lock_guard lock(state().mutex);
  return state().held.size();
}

/// Does the runs and copies that are held, and sets their events.
void release() {
  const std::lock_guard lock(state().mutex);
  for (const auto& [work, event] : state().held) {
    work();
    if (auto* const ended = state().objects.find<FakeEvent>(event)) ended->is_ready = true;
  }
  state().held.clear();
  state().changed.notify_all();
}

/// Checks a call. Throws the error that the test has planned for the function, if there is one.
template <typename Fields>
void admit(const Function<Fields>& function, const Fields& args) {
  const auto& errors = state().plugin.errors;
  const auto planned = errors.find(std::string(function.name));
  if (planned != errors.end()) throw FakeError(planned->second.first, planned->second.second);
  if (args.head.struct_size < sizeof(Fields)) state().objects.misuse("the block is too small");
}

template <typename Fields, const Function<Fields>& function, void (*body)(Fields&)>
void* entry(void* arguments) {
  auto& args = *static_cast<Fields*>(arguments);
  const std::lock_guard lock(state().mutex);
  try {
    admit(function, args);
    body(args);
    return nullptr;
  } catch (const FakeError& error) {
    return new FakeError(error);
  }
}

/// Waits for an event. Releases the mutex while it waits; the other functions always hold it.
void* await_event(void* arguments) {
  auto& args = *static_cast<EventArgs*>(arguments);
  std::unique_lock lock(state().mutex);
  try {
    admit(kEventAwait, args);
    const auto& event = state().objects.get<FakeEvent>(args.event, "event");
    state().changed.wait(lock, [&] { return event.is_ready; });
    return nullptr;
  } catch (const FakeError& error) {
    return new FakeError(error);
  }
}

void* destroy_error(void* arguments) {
  delete static_cast<FakeError*>(static_cast<ErrorArgs*>(arguments)->error);
  return nullptr;
}
void* error_message(void* arguments) {
  auto& args = *static_cast<ErrorMessageArgs*>(arguments);
  args.message = static_cast<FakeError*>(args.error)->what();
  args.size = std::strlen(args.message);
  return nullptr;
}
void* error_code(void* arguments) {
  auto& args = *static_cast<ErrorCodeArgs*>(arguments);
  args.code = static_cast<FakeError*>(args.error)->code;
  return nullptr;
}

class Table {
 public:
  Table() {
    api_.head.struct_size = sizeof(api_) + sizeof(functions_);
    api_.major = state().plugin.major;
    api_.minor = state().plugin.minor;
    put(kErrorDestroy, destroy_error);
    put(kErrorMessage, error_message);
    put(kErrorGetCode, error_code);
    put(kEventAwait, await_event);
    add<InitializeArgs, kPluginInitialize, initialize>();
    add<AttributesArgs, kPluginAttributes, attributes>();
    add<EventArgs, kEventDestroy, destroy_event>();
    add<EventReadyArgs, kEventIsReady, event_ready>();
    add<EventArgs, kEventError, event_error>();
    add<ClientCreateArgs, kClientCreate, create_client>();
    add<ClientArgs, kClientDestroy, destroy_client>();
    add<ClientTextArgs, kPlatformName, platform_name>();
    add<ClientTextArgs, kPlatformVersion, platform_version>();
    add<DevicesArgs, kAddressableDevices, devices>();
    add<DescriptionArgs, kGetDescription, description>();
    add<DeviceIdArgs, kDeviceId, device_id>();
    add<DeviceKindArgs, kDeviceKind, device_kind>();
    add<MemoryStatsArgs, kMemoryStats, memory_stats>();
    add<CompileArgs, kCompile, compile>();
    add<GetExecutableArgs, kGetExecutable, get_executable>();
    add<CountArgs, kNumOutputs, num_outputs>();
    add<SerializeArgs, kSerialize, serialize>();
    add<DeserializeArgs, kDeserialize, deserialize>();
    add<ExecutableArgs, kExecutableDestroy, destroy_executable>();
    add<ExecutableArgs, kLoadedDestroy, destroy_executable>();
    add<ExecuteArgs, kExecute, execute>();
    add<FromHostArgs, kFromHost, from_host>();
    add<ToHostArgs, kToHost, to_host>();
    add<AddressArgs, kUnsafePointer, unsafe_pointer>();
    add<BufferArgs, kBufferDestroy, destroy_buffer>();
  }
  const Api* api() const { return &api_; }

 private:
  template <typename Fields>
  void put(const Function<Fields>& function, void* (*body)(void*)) {
    if (function.name != state().plugin.lacks) functions_[function.slot] = body;
  }
  template <typename Fields, const Function<Fields>& function, void (*body)(Fields&)>
  void add() {
    put(function, entry<Fields, function, body>);
  }

  static constexpr std::size_t kSlots = 118;  // the number of functions in API 0.81
  Api api_{};
  void* (*functions_[kSlots])(void*){};
};

}  // namespace
}  // namespace weft::testing

extern "C" {

[[gnu::visibility("default")]] weft::testing::FakePlugin* weft_fake_plugin() {
  weft::testing::FakePlugin& plugin = weft::testing::state().plugin;
  plugin.release = weft::testing::release;
  plugin.held = weft::testing::held;
  return &plugin;
}

[[gnu::visibility("default")]] const weft::pjrt::Api* GetPjrtApi() {
  weft::testing::add_self_test();
  static const auto& table = *new weft::testing::Table;
  return table.api();
}
}
