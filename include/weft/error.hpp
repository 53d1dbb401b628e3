#pragma once
/// Error, weft's one exception type, and WEFT_CHECK for internal errors.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace weft {

/// Why something failed. Values are stable: they travel between processes and into files.
enum class Errc : std::uint8_t {
  invalid_argument = 1,    ///< a value the caller gave can't be used; the message names it
  mesh_mismatch = 2,       ///< sizes of workers, chips, topology and mesh contradict each other
  program_divergence = 3,  ///< two workers (or chips) don't run the same thing
  not_found = 4,           ///< a file, a job or a name that isn't there
  io = 5,                  ///< a system call failed; the message has the system's text
  corrupt = 6,             ///< bytes from outside failed verification
  version = 7,             ///< written by a version that this one can't read
  no_space = 8,            ///< memory, /dev/shm or an arena is too small
  timeout = 9,
  peer_lost = 10,    ///< a worker ended or was lost too early
  cancelled = 11,    ///< from outside: a signal to the trainer
  unavailable = 12,  ///< this build or this machine doesn't have it
  loop_failed = 13,  ///< the user's loop (or callback) threw an exception of its own
};

/// "invalid_argument", "mesh_mismatch", ...
std::string_view to_string(Errc code) noexcept;
/// The code of that name. Throws invalid_argument for another word.
Errc parse_errc(std::string_view name);

/// Thrown within a process; actors and processes pass it on as a value.
class Error : public std::runtime_error {
 public:
  Error(Errc code, std::string message) : std::runtime_error(std::move(message)), code_(code) {}

  Errc code() const noexcept { return code_; }

 private:
  Errc code_;
};

/// Throws Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(Errc code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Called with the text of a failed WEFT_CHECK before the process aborts. Must not throw.
using CheckHook = void (*)(std::string_view text) noexcept;

/// Installs the hook (a worker's hook writes the text to the board); returns the previous one.
CheckHook set_check_hook(CheckHook hook) noexcept;

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string values) noexcept;

}  // namespace weft

/// Aborts with the condition and the given values if `condition` is false, in every build. For
/// errors of weft itself; mistakes of callers throw Error.
#define WEFT_CHECK(condition, ...)           \
  (static_cast<bool>(condition)              \
       ? static_cast<void>(0)                \
       : ::weft::check_failed(               \
             __FILE__, __LINE__, #condition, \
             ::weft::detail::check_values(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__)))

namespace weft::detail {

/// "a, b = 1, 2": the names as written, then the values.
template <typename... Args>
std::string check_values(std::string_view names, const Args&... args) {
  if constexpr (sizeof...(args) == 0) {
    return {};
  } else {
    std::string values;
    ((values += fmt::format("{}{}", values.empty() ? "" : ", ", args)), ...);
    return fmt::format("{} = {}", names, values);
  }
}

}  // namespace weft::detail
