/// Runs one suite on wires over TLS and over UCX. The members of a test are processes.

#include "transport/wires/wires.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <string>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/wire_book.hpp"

namespace weft::wires_test {
namespace {

using testing::ChildProcess;
using testing::WireBook;
using testing::WireKind;
using Bytes = std::vector<std::byte>;

/// Words that the members of a test share.
class SharedWords {
 public:
  SharedWords()
      : words_(static_cast<std::atomic<std::uint32_t>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedWords() { ::munmap(words_, 4096); }
  SharedWords(const SharedWords&) = delete;
  SharedWords& operator=(const SharedWords&) = delete;

  void set(int word) {
    words_[word].store(1);
    wake_all(words_[word]);
  }
  bool is_set(int word) const { return words_[word].load() != 0; }
  void await(int word) const {
    const auto deadline = std::chrono::steady_clock::now() + testing::kWirePatience;
    while (!is_set(word)) {
      if (std::chrono::steady_clock::now() > deadline) fail(Errc::timeout, "word {}", word);
      sleep_on(words_[word], 0, kSleepSlice);
    }
  }

 private:
  std::atomic<std::uint32_t>* words_;
};

/// Returns bytes that differ from place to place and from seed to seed.
Bytes pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::uint64_t> words(size / 8 + 1);
  std::uint64_t value = seed * 0x9e3779b97f4a7c15 + 1;
  for (std::uint64_t& word : words) {
    value = value * 6364136223846793005 + 1442695040888963407;
    word = value ^ value >> 32;
  }
  Bytes bytes(size);
  if (size > 0) std::memcpy(bytes.data(), words.data(), size);
  return bytes;
}

void require(bool condition, std::string_view what) {
  if (!condition) throw std::runtime_error(std::string(what));
}

/// Makes progress until the condition holds.
template <typename Condition>
void progress_until(Wires& wires, std::string_view what, const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + testing::kWirePatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) fail(Errc::timeout, "{}", what);
    if (!wires.progress()) wires.wait(kSleepSlice);
  }
}

void finish_posts(Wires& wires) {
  progress_until(wires, "posts end", [&] {
    for (int i = 0; i < static_cast<int>(wires.peers().size()); ++i) {
      const WireStatus& status = wires.status(i);
      require(status.state != WireState::lost, "lost: " + status.why);
      if (status.sends + status.receives > 0) return false;
    }
    return true;
  });
}

class WiresConform : public ::testing::TestWithParam<WireKind> {
 protected:
  using Body = std::function<void(int member, Wires& wires)>;

  void SetUp() override {
    if (GetParam() == WireKind::tls) return;
    const std::string why = testing::why_no_ucx();
    if (!why.empty()) GTEST_SKIP() << "wires over UCX aren't tested: " << why;
  }

  /// Starts one member, whose wires are up when `body` begins.
  ChildProcess start(WireBook& book, int member, const Body& body) {
    const WireKind kind = GetParam();
    return ChildProcess([&book, member, body, kind] {
      if (kind == WireKind::ucx) testing::set_ucx_variables();
      const std::unique_ptr<Wires> wires = book.connect(kind, WireBook::config(member));
      await_wires(*wires, testing::kWirePatience);
      body(member, *wires);
    });
  }
  void run(int members, const Body& body) {
    WireBook book(members);
    std::vector<ChildProcess> processes;
    for (int member = 0; member < members; ++member) {
      processes.push_back(start(book, member, body));
    }
    for (int member = 0; member < members; ++member) {
      EXPECT_EQ(processes[static_cast<std::size_t>(member)].join(), "") << "member " << member;
    }
  }
};

/// Sends and receives messages of these sizes in both directions of one wire at once.
void exchange(Wires& wires, int wire, int self, int peer, const std::vector<std::size_t>& sizes) {
  std::vector<Bytes> sent;
  std::vector<Bytes> received;
  const auto seed = [](int from, std::size_t i) {
    return static_cast<std::uint64_t>(from) * 1000 + i;
  };
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    received.emplace_back(sizes[i]);
    sent.push_back(pattern(sizes[i], seed(self, i)));
  }
  for (Bytes& bytes : received) wires.receive(wire, bytes);
  for (const Bytes& bytes : sent) wires.send(wire, bytes);
  finish_posts(wires);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    require(received[i] == pattern(sizes[i], seed(peer, i)),
            fmt::format("message {} of {} bytes arrived as sent", i, sizes[i]));
  }
}

TEST_P(WiresConform, CarryMessagesOfAllSizes) {
  run(2, [](int self, Wires& wires) {
    for (const std::size_t size :
         {0U, 1U, 7U, 200U, 4096U, 8191U, 16383U, 16384U, 16385U, 1U << 20, 3'000'001U}) {
      exchange(wires, 0, self, 1 - self, {size});
    }
    exchange(wires, 0, self, 1 - self, {std::size_t{64} << 20});
  });
}

TEST_P(WiresConform, KeepTheOrderOfManyMessages) {
  run(2, [](int self, Wires& wires) {
    std::mt19937_64 random(1);
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 2000; ++i) {
      sizes.push_back(random() % 4 == 0 ? random() % 100'000 : random() % 300);
    }
    exchange(wires, 0, self, 1 - self, sizes);
  });
}

TEST_P(WiresConform, ConnectEveryMemberToAllOthers) {
  constexpr int kMembers = 8;
  run(kMembers, [](int self, Wires& wires) {
    for (std::uint64_t round = 0; round < 20; ++round) {
      std::vector<Bytes> sent;
      std::vector<Bytes> received;
      const std::size_t size = 1 + round * 997;
      for (int peer = 0; peer < kMembers; ++peer) {
        if (peer == self) continue;
        received.emplace_back(size);
        sent.push_back(pattern(size, round * 64 + static_cast<std::uint64_t>(self * 8 + peer)));
      }
      for (std::size_t i = 0; i < sent.size(); ++i) {
        wires.receive(static_cast<int>(i), received[i]);
        wires.send(static_cast<int>(i), sent[i]);
      }
      finish_posts(wires);
      for (std::size_t i = 0; i < sent.size(); ++i) {
        const int peer = static_cast<int>(i) < self ? static_cast<int>(i) : static_cast<int>(i) + 1;
        require(
            received[i] == pattern(size, round * 64 + static_cast<std::uint64_t>(peer * 8 + self)),
            fmt::format("round {} from member {}", round, peer));
      }
    }
  });
}

TEST_P(WiresConform, KeepWhatArrivesBeforeItIsAwaited) {
  SharedWords words;
  run(2, [&](int self, Wires& wires) {
    const Bytes sent = pattern(100'000, 5);
    Bytes received(sent.size());
    if (self == 0) {
      wires.send(0, sent);
      finish_posts(wires);
      words.set(0);
    } else {
      progress_until(wires, "member 0 has sent", [&] { return words.is_set(0); });
      wires.receive(0, received);
      finish_posts(wires);
      require(received == sent, "the bytes are those that were sent");
    }
  });
}

TEST_P(WiresConform, DeliverWhatWasSentBeforeTheEnd) {
  run(2, [](int self, Wires& wires) {
    static const Bytes sent = pattern(1 << 20, 6);
    if (self == 0) {
      wires.send(0, sent);
      return;  // the destructor delivers `sent`, which outlives the wires
    }
    Bytes received(sent.size());
    wires.receive(0, received);
    finish_posts(wires);
    require(received == sent, "the bytes are those that were sent");
    std::byte more;
    wires.receive(0, {&more, 1});
    progress_until(wires, "the wire is lost",
                   [&] { return wires.status(0).state == WireState::lost; });
    require(!wires.status(0).why.empty(), "a reason is given");
    require(wires.status(0).receives == 1, "the last post never ends");
  });
}

TEST_P(WiresConform, ReportAKilledPeerAndServeTheOthers) {
  WireBook book(3);
  SharedWords words;
  const auto body = [&](int self, Wires& wires) {
    Bytes never(1000);
    if (self == 2) {
      words.set(2);
      words.await(3);  // never set, so this waits for the kill
    }
    wires.receive(1, never);  // wire 1 of both others leads to member 2
    words.set(self);
    progress_until(wires, "the wire to the killed member is lost",
                   [&] { return wires.status(1).state == WireState::lost; });
    require(!wires.status(1).why.empty(), "a reason is given");
    const Bytes sent = pattern(5000, static_cast<std::uint64_t>(self));
    Bytes received(sent.size());
    wires.receive(0, received);
    wires.send(0, sent);
    progress_until(wires, "the other wire still works",
                   [&] { return wires.status(0).sends + wires.status(0).receives == 0; });
    require(received == pattern(5000, static_cast<std::uint64_t>(1 - self)), "the bytes arrive");
  };
  ChildProcess first = start(book, 0, body);
  ChildProcess second = start(book, 1, body);
  ChildProcess victim = start(book, 2, body);
  for (int word = 0; word < 3; ++word) words.await(word);
  victim.kill();
  EXPECT_EQ(first.join(), "");
  EXPECT_EQ(second.join(), "");
  EXPECT_EQ(victim.join(), "killed by signal 9");
}

TEST_P(WiresConform, WaitForAStoppedPeer) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;  // more than the sockets' buffers hold
  WireBook book(2);
  SharedWords words;
  const auto body = [&](int self, Wires& wires) {
    if (self == 1) {
      words.set(0);
      words.await(1);
      return exchange(wires, 0, 1, 0, {kBytes});
    }
    words.await(1);
    const Bytes sent = pattern(kBytes, 0);
    Bytes received(kBytes);
    wires.receive(0, received);
    wires.send(0, sent);
    for (int i = 0; i < 20; ++i) {
      while (wires.progress()) {
      }
      wires.wait(kSleepSlice);
    }
    require(wires.status(0).state == WireState::up, "the wire to a stopped member is up");
    require(wires.status(0).receives == 1, "a stopped member sends nothing");
    words.set(2);
    finish_posts(wires);
    require(received == pattern(kBytes, 1000), "the bytes arrive");
  };
  ChildProcess waiting = start(book, 0, body);
  ChildProcess stopped = start(book, 1, body);
  words.await(0);
  ::kill(stopped.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(stopped.pid(), &status, WUNTRACED), stopped.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  words.set(1);
  words.await(2);
  ::kill(stopped.pid(), SIGCONT);
  EXPECT_EQ(waiting.join(), "");
  EXPECT_EQ(stopped.join(), "");
}

TEST_P(WiresConform, NameThePeersThatAreMissing) {
  const WireKind kind = GetParam();
  const auto body = [kind] {
    if (kind == WireKind::ucx) testing::set_ucx_variables();
    WireBook book(2);
    std::string address;
    {
      const std::unique_ptr<Wires> gone = testing::make_wires(kind, WireBook::config(1));
      address = gone->address();
    }
    const std::unique_ptr<Wires> wires = testing::make_wires(kind, WireBook::config(0));
    wires->connect({{WireBook::end(1), address}});
    testing::expect_error(Errc::timeout, {"chip 1 of worker 11 on host 1"},
                          [&] { await_wires(*wires, std::chrono::milliseconds(200)); });
    testing::expect_error(Errc::peer_lost, {"aborted"}, [&] {
      await_wires(*wires, testing::kWirePatience, [] { fail(Errc::peer_lost, "aborted"); });
    });
    require(!::testing::Test::HasFailure(), "the errors are as expected");
  };
  EXPECT_EQ(ChildProcess(body).join(), "");
}

TEST_P(WiresConform, ConnectLaterWhenBothEndsNeedEachOther) {
  const WireKind kind = GetParam();
  WireBook book(3);
  SharedWords words;
  const auto body = [&, kind](int self) {
    if (kind == WireKind::ucx) testing::set_ucx_variables();
    const std::unique_ptr<Wires> wires = book.connect(kind, WireBook::config(self), true);
    await_wires(*wires, testing::kWirePatience);
    const auto require_idle = [&](int wire) {
      require(wires->status(wire).state == WireState::idle, "the wire that nobody needs is idle");
    };
    require_idle(0);
    require_idle(1);
    if (self == 2) {
      words.await(0);
      exchange(*wires, 0, 2, 0, {5000});
      return require_idle(1);
    }
    exchange(*wires, 0, self, 1 - self, {5000});
    require_idle(1);
    if (self == 1) return;
    const Bytes sent = pattern(5000, 0);
    Bytes received(sent.size());
    wires->send(1, sent);
    wires->receive(1, received);
    for (int i = 0; i < 20; ++i) {  // member 2 doesn't need it yet
      wires->progress();
      wires->wait(kSleepSlice);
    }
    require(wires->status(1).state == WireState::connecting, "the wire waits for its other end");
    words.set(0);
    finish_posts(*wires);
    require(received == pattern(5000, 2000), "the bytes of member 2 arrive");
  };
  std::vector<ChildProcess> members;
  for (int member = 0; member < 3; ++member) members.emplace_back([&, member] { body(member); });
  for (ChildProcess& member : members) EXPECT_EQ(member.join(), "");
}

/// Each of these changes makes member 0 differ from what member 1 expects.
TEST_P(WiresConform, ConnectOnlyEndsThatMeanEachOther) {
  const WireKind kind = GetParam();
  const std::pair<std::string_view, std::function<void(WireConfig&)>> changes[] = {
      {"job", [](WireConfig& config) { config.job = "another"; }},
      {"generation", [](WireConfig& config) { ++config.generation; }},
      {"channel", [](WireConfig& config) { ++config.channel; }},
      {"host", [](WireConfig& config) { ++config.self.host; }},
      {"worker", [](WireConfig& config) { ++config.self.worker; }},
  };
  for (const auto& [name, change] : changes) {
    WireBook book(2);
    SharedWords words;
    const auto body = [&, kind](int self) {
      if (kind == WireKind::ucx) testing::set_ucx_variables();
      WireConfig config = WireBook::config(self);
      if (self == 0) change(config);
      const std::unique_ptr<Wires> wires = book.connect(kind, config);
      // Both make progress until both have tried for a while, so that each sees the other.
      for (int i = 0; i < 20 || !words.is_set(1 - self); ++i) {
        wires->progress();
        require(wires->status(0).state != WireState::up, "the wire isn't up");
        wires->wait(kSleepSlice);
        if (i >= 20) words.set(self);
      }
      words.set(self);
    };
    ChildProcess first([&] { body(0); });
    ChildProcess second([&] { body(1); });
    EXPECT_EQ(first.join(), "") << name;
    EXPECT_EQ(second.join(), "") << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, WiresConform, ::testing::Values(WireKind::tls, WireKind::ucx),
                         [](const auto& tested) {
                           return tested.param == WireKind::tls ? "tls" : "ucx";
                         });

}  // namespace
}  // namespace weft::wires_test
