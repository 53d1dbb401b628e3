#include "chips/pjrt/plugin.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "chips/pjrt/abi/buffer_abi.hpp"
#include "chips/pjrt/abi/client_abi.hpp"
#include "chips/pjrt/abi/executable_abi.hpp"
#include "chips/pjrt/discovery.hpp"

namespace weft::pjrt {
namespace {

/// Converts a status code of absl, as far as weft distinguishes them.
Errc code_of(int status) {
  switch (status) {
    case 1: return Errc::cancelled;
    case 3: return Errc::invalid_argument;
    case 4: return Errc::timeout;
    case 8: return Errc::no_space;
    default: return Errc::unavailable;
  }
}

struct NeededFunction {
  std::size_t offset;
  std::string_view name;
};
template <typename... Fields>
constexpr auto needed(const Function<Fields>&... functions) {
  return std::array{NeededFunction{functions.offset(), functions.name}...};
}
/// All functions that weft needs to run programs.
constexpr auto kNeeded =
    needed(kErrorDestroy, kErrorMessage, kErrorGetCode, kPluginInitialize, kPluginAttributes,
           kEventDestroy, kEventIsReady, kEventError, kEventAwait, kClientCreate, kClientDestroy,
           kPlatformName, kPlatformVersion, kAddressableDevices, kCompile, kFromHost, kDeviceId,
           kDeviceKind, kGetDescription, kExecutableDestroy, kNumOutputs, kLoadedDestroy,
           kGetExecutable, kExecute, kBufferDestroy, kToHost);

std::string_view processor_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "arm64";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "POWER";
    default: return "another kind of processor";
  }
}

#if defined(__x86_64__)
constexpr unsigned kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kOwnMachine = EM_AARCH64;
#else
constexpr unsigned kOwnMachine = EM_NONE;  // not checked here; dlopen() reports a wrong processor
#endif

/// Throws if the file is missing or isn't for this processor, because dlopen()'s messages for these
/// cases aren't clear.
void require_own_processor(const std::string& path) {
  Elf64_Ehdr header{};
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(Errc::not_found, "PJRT plug-in {}: this file doesn't exist or can't be read", path);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    fail(Errc::unavailable, "PJRT plug-in {}: expected a shared library, but it isn't an ELF file",
         path);
  }
  if (kOwnMachine == EM_NONE || header.e_machine == kOwnMachine) return;
  fail(Errc::unavailable,
       "PJRT plug-in {}: it is for {}, and this machine is {}; install the plug-in's package for "
       "this machine",
       path, processor_name(header.e_machine), processor_name(kOwnMachine));
}

std::string text_of(const NamedValue& value) {
  switch (value.kind) {
    case NamedValue::text: return {value.text_value, value.size};
    case NamedValue::integer: return std::to_string(value.integer_value);
    case NamedValue::real: return fmt::format("{}", value.real_value);
    case NamedValue::flag: return value.flag_value ? "true" : "false";
    case NamedValue::integers: break;
  }
  std::string text;
  for (std::size_t i = 0; i < value.size; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ".", value.integers_value[i]);
  }
  return text;
}

}  // namespace

PluginError::PluginError(int status, const std::string& text, std::string words)
    : Error(code_of(status), text), status_(status), words_(std::move(words)) {}

const Plugin& Plugin::load(const std::string& path) {
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<const Plugin>>;
  const std::lock_guard lock(mutex);
  std::error_code error;
  const std::string file = std::filesystem::canonical(path, error).string();
  std::unique_ptr<const Plugin>& plugin = loaded[error ? path : file];
  if (plugin == nullptr) plugin.reset(new Plugin(path, open(path)));
  return *plugin;
}

const Plugin& Plugin::load_for(DeviceKind kind) {
  const std::optional<PluginFile> file = find_plugin(kind);
  if (!file) {
    fail(Errc::unavailable,
         "there is no PJRT plug-in for chips of kind {}: install one ({}), or name its file in "
         "WEFT_PJRT_PLUGIN",
         to_string(kind), install_command(kind));
  }
  preload_libraries(*file);
  return load(file->path);
}

const Api* Plugin::open(const std::string& path) {
  require_own_processor(path);
  // XLA reads this level once. At level 0, it logs lines about each client.
  ::setenv("TF_CPP_MIN_LOG_LEVEL", "1", 0);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(Errc::unavailable, "PJRT plug-in {}: it can't be loaded: {}", path, ::dlerror());
  }
  const auto get = reinterpret_cast<const Api* (*)()>(::dlsym(library, "GetPjrtApi"));
  const Api* const api = get == nullptr ? nullptr : get();
  if (api == nullptr) {
    fail(Errc::unavailable, "PJRT plug-in {}: expected the function GetPjrtApi(), which {}", path,
         get == nullptr ? "this library doesn't have" : "returned no table of functions");
  }
  return api;
}

Plugin::Plugin(std::string path, const Api* api) : path_(std::move(path)), api_(api) {
  refuse_unfit();
  Block<InitializeArgs> initialize;
  call(kPluginInitialize, initialize);
  Block<AttributesArgs> attributes;
  call(kPluginAttributes, attributes);
  for (std::size_t i = 0; i < attributes->count; ++i) {
    const NamedValue& value = attributes->attributes[i];
    attributes_.emplace_back(std::string(value.name, value.name_size), text_of(value));
  }
}

void Plugin::refuse_unfit() const {
  if (api_->major != 0 || api_->minor < kMinorMin) {
    fail(Errc::version,
         "{}: expected API 0.{} or later; install a newer version of the plug-in's package{}",
         name(), kMinorMin, api_->major != 0 ? ", or a newer weft" : "");
  }
  for (const NeededFunction& function : kNeeded) {
    if (address(function.offset) != nullptr) continue;
    fail(Errc::unavailable, "{}: it lacks {}, which weft calls; install another plug-in", name(),
         function.name);
  }
}

std::string Plugin::name() const {
  return fmt::format("the PJRT plug-in {} (API {}.{})",
                     std::filesystem::path(path_).filename().string(), api_->major, api_->minor);
}

void* Plugin::address(std::size_t offset) const {
  if (offset + sizeof(void*) > api_->head.struct_size) return nullptr;
  void* function = nullptr;
  std::memcpy(&function, reinterpret_cast<const std::byte*>(api_) + offset, sizeof function);
  return function;
}

void Plugin::call(std::size_t offset, std::string_view name, void* arguments) const {
  void* const function = address(offset);
  if (function == nullptr) {
    throw PluginError(kUnimplemented, fmt::format("{}: it lacks {}", this->name(), name), "");
  }
  check(reinterpret_cast<void* (*)(void*)>(function)(arguments), name);
}

const Extension* Plugin::extension(int type) const {
  for (auto* at = static_cast<const Extension*>(api_->head.extension); at; at = at->next) {
    if (at->type == type) return at;
  }
  return nullptr;
}

void Plugin::check(void* error, std::string_view function) const {
  if (error == nullptr) return;
  Block<ErrorMessageArgs> message;
  message->error = error;
  reinterpret_cast<void (*)(void*)>(address(kErrorMessage.offset()))(&message);
  Block<ErrorCodeArgs> code;
  code->error = error;
  ignore(kErrorGetCode.offset(), &code);
  const std::string words(message->message, message->size);
  destroy_error(error);
  throw PluginError(code->code, fmt::format("{}: {} failed: {}", name(), function, words), words);
}

void Plugin::ignore(std::size_t offset, void* arguments) const noexcept {
  void* const error = reinterpret_cast<void* (*)(void*)>(address(offset))(arguments);
  if (error != nullptr) destroy_error(error);
}

/// Unlike the plug-in's other functions, PJRT_Error_Destroy returns no error.
void Plugin::destroy_error(void* error) const noexcept {
  Block<ErrorArgs> arguments;
  arguments->error = error;
  reinterpret_cast<void (*)(void*)>(address(kErrorDestroy.offset()))(&arguments);
}

std::string Plugin::compiler() const {
  return fmt::format("XLA ({})", std::filesystem::path(path_).filename().string());
}

}  // namespace weft::pjrt
