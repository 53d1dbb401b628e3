#include "tests/support/killing_pjrt/killing_pjrt.hpp"

#include <dlfcn.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "chips/pjrt/abi/buffer_abi.hpp"
#include "chips/pjrt/abi/executable_abi.hpp"

namespace weft::testing {
namespace {

using namespace pjrt;

using PluginCall = void* (*)(void* arguments);

struct Kill {
  std::string function{};
  int number = 0;
  std::string marker{};

  static const Kill& wanted() {
    static const Kill kill = [] {
      Kill read;
      if (const char* const text = std::getenv(kKillVariable)) {
        std::istringstream(text) >> read.function >> read.number >> read.marker;
      }
      return read;
    }();
    return kill;
  }
};

std::atomic<bool> has_step = false;  ///< a step has been compiled, so calls are counted
std::atomic<int> calls = 0;          ///< the number of counted calls of Kill::function

/// Counts a call of `function`, and kills the process if it is the call that the test chose.
void count(std::string_view function) {
  const Kill& kill = Kill::wanted();
  if (!has_step || function != kill.function || ++calls != kill.number) return;
  if (std::filesystem::exists(kill.marker)) return;
  std::ofstream(kill.marker) << function;
  std::raise(SIGKILL);
}

PluginCall real_compile = nullptr;
PluginCall real_execute = nullptr;
PluginCall real_to_host = nullptr;

void* compile(void* arguments) {
  const Code& program = *static_cast<CompileArgs*>(arguments)->program;
  const std::string_view text(program.code, program.size);
  if (text.starts_with("module @weft_step ")) has_step = true;
  count(kCompile.name);
  return real_compile(arguments);
}

void* execute(void* arguments) {
  void* const error = real_execute(arguments);
  count(kExecute.name);  // the process may be killed during the run
  return error;
}

void* to_host(void* arguments) {
  void* const error = real_to_host(arguments);
  if (static_cast<ToHostArgs*>(arguments)->to != nullptr) count(kToHost.name);
  return error;
}

/// Replaces a function in the table with `by`, and returns the function that was there.
template <typename Fields>
PluginCall replace(std::vector<std::byte>& table, const Function<Fields>& function, PluginCall by) {
  PluginCall real = nullptr;
  std::memcpy(&real, table.data() + function.offset(), sizeof real);
  std::memcpy(table.data() + function.offset(), &by, sizeof by);
  return real;
}

/// Returns a copy of the real plug-in's table with this file's functions. Returns an empty table if
/// the plug-in can't be loaded.
std::vector<std::byte> make_table() {
  const char* const path = std::getenv(kRealPluginVariable);
  void* const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s: %s\n", kRealPluginVariable, path == nullptr ? "unset" : ::dlerror());
    return {};
  }
  const auto get = reinterpret_cast<const Api* (*)()>(::dlsym(library, "GetPjrtApi"));
  const auto* const api = reinterpret_cast<const std::byte*>(get());
  std::vector<std::byte> table(api, api + reinterpret_cast<const Api*>(api)->head.struct_size);
  real_compile = replace(table, kCompile, compile);
  real_execute = replace(table, kExecute, execute);
  real_to_host = replace(table, kToHost, to_host);
  return table;
}

}  // namespace
}  // namespace weft::testing

extern "C" [[gnu::visibility("default")]] const weft::pjrt::Api* GetPjrtApi() {
  static const auto& table = *new std::vector<std::byte>(weft::testing::make_table());
  return table.empty() ? nullptr : reinterpret_cast<const weft::pjrt::Api*>(table.data());
}
