#include "chips/pjrt/client.hpp"

#include <algorithm>
#include <cstdio>

#include "chips/pjrt/abi/client_abi.hpp"
#include "chips/pjrt/abi/executable_abi.hpp"

namespace weft::pjrt {
namespace {

constexpr int kInvalidArgument = 3;

/// Converts options to the plug-in's form, which points to the texts in `options`.
std::vector<NamedValue> named_values(const CompileFlags& options) {
  std::vector<NamedValue> values;
  for (const auto& [name, option] : options) {
    NamedValue& value = values.emplace_back();
    value.head.struct_size = sizeof(NamedValue);
    value.name = name.data();
    value.name_size = name.size();
    value.size = 1;
    if (const auto* text = std::get_if<std::string>(&option)) {
      value.kind = NamedValue::text;
      value.text_value = text->data();
      value.size = text->size();
    } else if (const auto* integer = std::get_if<std::int64_t>(&option)) {
      value.kind = NamedValue::integer;
      value.integer_value = *integer;
    } else if (const auto* real = std::get_if<double>(&option)) {
      value.kind = NamedValue::real;
      value.real_value = static_cast<float>(*real);
    } else {
      value.kind = NamedValue::flag;
      value.flag_value = std::get<bool>(option);
    }
  }
  return values;
}

std::string text_of(const Plugin& plugin, void* client, const Function<ClientTextArgs>& function) {
  Block<ClientTextArgs> arguments;
  arguments->client = client;
  plugin.call(function, arguments);
  return {arguments->text, arguments->size};
}

ClientDevice describe(const Plugin& plugin, void* device) {
  Block<DescriptionArgs> description;
  description->device = device;
  plugin.call(kGetDescription, description);
  Block<DeviceIdArgs> id;
  id->description = description->description;
  plugin.call(kDeviceId, id);
  Block<DeviceKindArgs> kind;
  kind->description = description->description;
  plugin.call(kDeviceKind, kind);
  return {.handle = device, .id = id->id, .kind = {kind->kind, kind->size}};
}

}  // namespace

void warn_on_stderr(const std::string& text) { fmt::print(stderr, "weft: {}\n", text); }

std::shared_ptr<Client> Client::make(const Plugin& plugin, const CompileFlags& options, Warn warn) {
  const std::shared_ptr<Client> client(new Client(plugin, std::move(warn)));
  client->create(options);
  return client;
}

Client::Client(const Plugin& plugin, Warn warn) : plugin_(plugin), warn_(std::move(warn)) {}

Client::~Client() {
  if (handle_ != nullptr) plugin_.destroy(kClientDestroy, handle_);
}

void Client::create(const CompileFlags& options) {
  const std::vector<NamedValue> values = named_values(options);
  Block<ClientCreateArgs> arguments;
  arguments->options = values.data();
  arguments->option_count = values.size();
  plugin_.call(kClientCreate, arguments);
  handle_ = arguments->client;
  platform_ = text_of(plugin_, handle_, kPlatformName);
  platform_version_ = text_of(plugin_, handle_, kPlatformVersion);
  Block<DevicesArgs> devices;
  devices->client = handle_;
  plugin_.call(kAddressableDevices, devices);
  for (void* const device : std::span(devices->devices, devices->count)) {
    devices_.push_back(describe(plugin_, device));
  }
}

std::optional<DeviceMemory> Client::memory(std::size_t device) const {
  if (!plugin_.has(kMemoryStats)) return std::nullopt;
  Block<MemoryStatsArgs> stats;
  stats->device = devices_.at(device).handle;
  try {
    plugin_.call(kMemoryStats, stats);
  } catch (const PluginError& error) {
    if (error.status() == kUnimplemented) return std::nullopt;
    throw;
  }
  DeviceMemory memory{.used_bytes = stats->used_bytes, .limit_bytes = {}};
  if (stats->limit_bytes.is_set) memory.limit_bytes = stats->limit_bytes.value;
  return memory;
}

void Client::set_flag(const std::string& name, FlagValue value) {
  const std::lock_guard lock(mutex_);
  flags_[name] = std::move(value);
}

CompileFlags Client::flags() const {
  const std::lock_guard lock(mutex_);
  return flags_;
}

Executable Client::compile(std::string_view text, const std::vector<int>& devices) {
  CompileOptions options{.devices = devices, .flags = flags()};
  while (true) {
    try {
      return compile_once(text, options);
    } catch (const PluginError& error) {
      // The plug-in's message contains the unknown flag, as in "No such compile option: 'name'".
      const auto unknown = std::ranges::find_if(options.flags, [&](const auto& flag) {
        return error.words().find('\'' + flag.first + '\'') != std::string::npos;
      });
      if (error.status() != kInvalidArgument || unknown == options.flags.end() ||
          error.words().find("No such compile option") == std::string::npos) {
        throw;
      }
      const std::lock_guard lock(mutex_);
      if (flags_.erase(unknown->first) != 0) {
        warn_(fmt::format("{} doesn't know the flag {}; programs are compiled without it",
                          plugin_.name(), unknown->first));
      }
      options.flags.erase(unknown);
    }
  }
}

Executable Client::compile_once(std::string_view text, const CompileOptions& options) {
  const std::string bytes = options.bytes();
  constexpr std::string_view kFormat = "mlir";
  Block<Code> code;
  code->code = text.data();
  code->size = text.size();
  code->format = kFormat.data();
  code->format_size = kFormat.size();
  Block<CompileArgs> compile;
  compile->client = handle_;
  compile->program = code.get();
  compile->options = bytes.data();
  compile->options_size = bytes.size();
  plugin_.call(kCompile, compile);
  return {shared_from_this(), compile->loaded};
}

Executable Client::load(std::string_view bytes) {
  Block<DeserializeArgs> arguments;
  arguments->client = handle_;
  arguments->bytes = bytes.data();
  arguments->size = bytes.size();
  plugin_.call(kDeserialize, arguments);
  return {shared_from_this(), arguments->loaded};
}

Buffer Client::from_host(std::size_t device, const void* data, ElementType type,
                         std::span<const std::int64_t> dims, HostMemory semantics) const {
  Block<FromHostArgs> arguments;
  arguments->client = handle_;
  arguments->data = data;
  arguments->type = type;
  arguments->dims = dims.data();
  arguments->rank = dims.size();
  arguments->semantics = semantics;
  arguments->device = devices_.at(device).handle;
  plugin_.call(kFromHost, arguments);
  Buffer buffer(shared_from_this(), arguments->buffer);
  Event done(shared_from_this(), arguments->done_event);
  // Memory that is used in place has an event that becomes ready only when the last buffer over the
  // memory has been destroyed.
  if (semantics == HostMemory::only_during_call || semantics == HostMemory::until_transfer) {
    done.await();
  }
  return buffer;
}

Buffer Client::from_host(std::size_t device, const void* data, const TensorType& type,
                         HostMemory semantics) const {
  std::vector<std::int64_t> dims;
  for (int dim = 0; dim < type.shape.size(); ++dim) dims.push_back(type.shape[dim]);
  return from_host(device, data, element_type(type.dtype), dims, semantics);
}

}  // namespace weft::pjrt
