#include "actors/process/throw_places.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <typeinfo>
#include <vector>

#include "inspect/process/stack.hpp"
#include "inspect/why/stack_places.hpp"

namespace weft {
namespace {

constexpr std::size_t kCallCountMax = 48;
/// The number of other exceptions that may be thrown while an exception waits to be thrown again.
constexpr std::size_t kThrowCount = 64;

/// The call stack of one throw. `exception` publishes the other fields, so it is null while they
/// are written.
struct Throw {
  std::atomic<const void*> exception{};
  std::atomic<const std::type_info*> type{};
  std::array<std::atomic<std::uintptr_t>, kCallCountMax> returns{};  ///< 0 after the last call
};

/// The number of ThrowsKept that exist.
std::atomic<int> keepers{};
std::atomic<std::size_t> throw_count{};
std::array<Throw, kThrowCount> last_throws;

/// Records the call stack of a throw. It takes no lock: a forked child may throw too, and would
/// wait forever for a lock that another thread held during the fork.
void keep_throw(const void* exception, const std::type_info* type) {
  const std::size_t number = throw_count.fetch_add(1, std::memory_order_relaxed);
  Throw& place = last_throws[number % kThrowCount];
  place.exception.store(nullptr, std::memory_order_release);
  place.type.store(type, std::memory_order_relaxed);
  std::array<void*, kCallCountMax> calls{};  // null after the last call
  ::backtrace(calls.data(), static_cast<int>(calls.size()));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    place.returns[i].store(reinterpret_cast<std::uintptr_t>(calls[i]), std::memory_order_relaxed);
  }
  place.exception.store(exception, std::memory_order_release);
}

/// Forgets an earlier exception that was at this address, because it no longer exists.
void forget_throw(const void* exception) {
  for (Throw& place : last_throws) {
    const void* expected = exception;
    place.exception.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
  }
}

/// Finds the original of a function that this file replaces, first in the libraries after this one,
/// then in the C++ library.
template <typename Function>
Function* find_next(const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    void* const library = ::dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = ::dlsym(library, name);
  }
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

/// Returns the calls of a throw, innermost first. Returns nothing if the throw isn't among the last
/// kThrowCount ones, or if no ThrowsKept existed when it happened.
std::vector<std::uintptr_t> find_throw(const void* exception, const std::type_info* type) {
  const std::size_t end = throw_count.load(std::memory_order_acquire);
  for (std::size_t back = 1; back <= kThrowCount && back <= end; ++back) {
    const Throw& place = last_throws[(end - back) % kThrowCount];
    const auto is_it = [&] {
      return place.exception.load(std::memory_order_acquire) == exception && place.type == type;
    };
    if (!is_it()) continue;
    std::vector<std::uintptr_t> returns;
    for (const auto& address : place.returns) {
      if (address == 0) break;
      returns.push_back(address.load(std::memory_order_relaxed));
    }
    if (is_it()) return returns;
  }
  return {};
}

/// Returns the exception's address. In libstdc++, an exception_ptr is a pointer to the exception.
const void* address_of(const std::exception_ptr& thrown) {
  static_assert(sizeof(std::exception_ptr) == sizeof(void*));
  const void* address = nullptr;
  std::memcpy(&address, &thrown, sizeof address);
  return address;
}

/// Returns the exception that `thrown` holds (std::nested_exception); null if it holds none.
std::exception_ptr inner_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::nested_exception& e) {
    return e.nested_ptr();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

ThrowsKept::ThrowsKept() noexcept {
  // While no ThrowsKept existed, entries of exceptions that no longer exist were not removed.
  if (keepers.load(std::memory_order_relaxed) == 0) {
    for (Throw& place : last_throws) place.exception.store(nullptr, std::memory_order_relaxed);
  }
  keepers.fetch_add(1, std::memory_order_relaxed);
}
ThrowsKept::~ThrowsKept() { keepers.fetch_sub(1, std::memory_order_relaxed); }

std::string thrown_at(std::exception_ptr thrown) {
  std::string place;
  if (keepers.load(std::memory_order_relaxed) == 0) return place;
  for (; thrown; thrown = inner_of(thrown)) {
    const auto returns = find_throw(address_of(thrown), thrown.__cxa_exception_type());
    const std::string own = to_text(users_frames(name_calls(returns)));
    if (!own.empty()) place = own;
  }
  return place;
}

}  // namespace weft

/// This function and the next one are weak, so a program may define its own ones, or link the C++
/// library statically.
extern "C" [[noreturn, gnu::weak]] void __cxa_throw(void* exception, std::type_info* type,
                                                    void (*destroy)(void*)) {
  static const auto next =
      weft::find_next<void(void*, std::type_info*, void (*)(void*))>("__cxa_throw");
  if (weft::keepers.load(std::memory_order_relaxed) > 0) weft::keep_throw(exception, type);
  next(exception, type, destroy);
  std::abort();
}

/// The C++ runtime calls this before each throw, and for exceptions that are made without a throw.
extern "C" [[gnu::weak]] void* __cxa_allocate_exception(std::size_t bytes) noexcept {
  static const auto next = weft::find_next<void*(std::size_t)>("__cxa_allocate_exception");
  void* const exception = next(bytes);
  if (weft::keepers.load(std::memory_order_relaxed) > 0) weft::forget_throw(exception);
  return exception;
}
