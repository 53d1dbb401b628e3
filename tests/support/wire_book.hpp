#pragma once
/// Connects the members of a test, which are threads or processes, by wires.

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tests/support/child_process.hpp"
#include "transport/memory/wait.hpp"
#include "transport/wires/wires.hpp"

namespace weft::testing {

enum class WireKind : std::uint8_t { tls, ucx };

/// The time after which a test gives up. It is long, because the machine may be busy.
inline constexpr std::chrono::seconds kWirePatience{60};

/// Sets the environment variables that a process needs before it uses UCX.
inline void set_ucx_variables() {
  for (const std::string& variable : ucx_variables()) {
    const std::size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
}

inline std::unique_ptr<Wires> make_wires(WireKind kind, const WireConfig& config) {
  return kind == WireKind::tls ? make_tls_wires(config) : make_ucx_wires(config);
}

/// The addresses of the members, in memory that forks share.
class WireBook {
 public:
  explicit WireBook(int members) : members_(members) {
    void* memory =
        ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    pages_ = static_cast<Page*>(memory);
    for (int i = 0; i < members; ++i) new (&pages_[i]) Page();
  }
  ~WireBook() { ::munmap(pages_, bytes()); }
  WireBook(const WireBook&) = delete;
  WireBook& operator=(const WireBook&) = delete;

  int members() const { return members_; }
  static WireEnd end(int member) {
    const auto number = static_cast<std::uint32_t>(member);
    return {.host = number, .worker = 10 + number, .chip = number};
  }
  static WireConfig config(int member) {
    return {.job = "book", .generation = 7, .self = end(member), .secret = std::string(32, 's')};
  }

  void write(int member, const std::string& address) {
    Page& page = pages_[member];
    if (address.size() > sizeof page.address) throw std::length_error("the address is too long");
    std::memcpy(page.address, address.data(), address.size());
    page.size.store(static_cast<std::uint32_t>(address.size()));
    wake_all(page.size);
  }
  /// Waits until the member has written its address.
  std::string read(int member) const {
    const Page& page = pages_[member];
    const auto deadline = std::chrono::steady_clock::now() + kWirePatience;
    while (page.size.load() == 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        fail(Errc::timeout, "member {} has written no address", member);
      }
      sleep_on(page.size, 0, kSleepSlice);
    }
    return {page.address, page.size.load()};
  }

  /// Makes the member's wires, and connects them to those of all others, now or later. Wire i leads
  /// to member i, or to member i + 1 if i isn't below the member.
  std::unique_ptr<Wires> connect(WireKind kind, const WireConfig& config, bool later = false) {
    std::unique_ptr<Wires> wires = make_wires(kind, config);
    const auto self = static_cast<int>(config.self.chip);
    write(self, wires->address());
    std::vector<WirePeer> peers;
    for (int member = 0; member < members_; ++member) {
      if (member != self) peers.push_back({end(member), read(member), later});
    }
    wires->connect(std::move(peers));
    return wires;
  }

 private:
  struct Page {
    std::atomic<std::uint32_t> size;
    char address[2044];
  };
  std::size_t bytes() const { return static_cast<std::size_t>(members_) * sizeof(Page); }

  int members_;
  Page* pages_ = nullptr;
};

/// Returns the reason why tests can't use wires over UCX; "" if they can. Must be called while the
/// process has only one thread.
inline std::string why_no_ucx() {
#if defined(WEFT_THREAD_SANITIZER) || defined(__SANITIZE_ADDRESS__)
  return "UCX isn't built with sanitizers";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
  return "UCX isn't built with sanitizers";
#endif
#endif
  static const std::string why = ChildProcess([] {
                                   set_ucx_variables();
                                   make_ucx_wires(WireBook::config(0));
                                 }).join();
  return why;
}

/// TLS wires between all pairs of `members` members in this process.
class WireGrid {
 public:
  explicit WireGrid(int members) {
    for (int member = 0; member < members; ++member) {
      wires_.push_back(make_tls_wires(WireBook::config(member)));
    }
    for (int member = 0; member < members; ++member) {
      std::vector<WirePeer> peers;
      for (int peer = 0; peer < members; ++peer) {
        if (peer != member) peers.push_back({WireBook::end(peer), of(peer).address()});
      }
      of(member).connect(std::move(peers));
    }
    for (int member = 0; member < members; ++member) {
      await_wires(of(member), kWirePatience, [&] {
        for (const auto& wires : wires_) wires->progress();
      });
    }
  }

  Wires& of(int member) const { return *wires_[static_cast<std::size_t>(member)]; }

 private:
  std::vector<std::unique_ptr<Wires>> wires_;
};

}  // namespace weft::testing
