/// Tests jobs whose control connections use TLS: the result is the same, and strangers at the port
/// change nothing.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>

#include "tests/fault/strangers.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/tls_stranger.hpp"

namespace weft::tls_test {
namespace {

namespace fs = std::filesystem;
using testing::answer_to;
using testing::Authority;
using testing::basp;
using testing::FaultApp;
using testing::preamble;
using testing::TcpStranger;
using testing::times;
using testing::variable_of;
using Json = nlohmann::json;

constexpr std::string_view kWrong = "ffffffffffffffffffffffffffffffff";

class Tls : public ::testing::Test {
 protected:
  Tls() { ::signal(SIGPIPE, SIG_IGN); }
  ~Tls() override { fs::remove_all(folder); }

  std::vector<std::string> arguments(const std::string& mode) const {
    return {"--mode",         mode,        "--max-failures", "1",        "--tls-certificate",
            ours.certificate, "--tls-key", ours.key,         "--tls-ca", ours.ca};
  }
  static std::uint16_t port_of(const std::string& job) {
    const std::string address = variable_of(job, "WEFT_COORDINATOR_ADDRESS");
    EXPECT_TRUE(address.starts_with("tls://127.0.0.1:")) << address;
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  static Json calm() {
    FaultApp app({"--mode", "none", "--max-failures", "1"});
    EXPECT_EQ(app.wait(), 0) << app.output();
    return app.result().at("history");
  }

  std::string folder = "/tmp/weft-tls-" + testing::unique_job();
  Authority authority{"ours"};
  TlsConfig ours = authority.issue(folder, "node");
};

TEST_F(Tls, AJobComesToTheSameResult) {
  FaultApp app(arguments("none"));
  const std::string job = app.job();
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("history"), calm());
  EXPECT_EQ(times(testing::trainer_log(app.result()), "control at tls://127.0.0.1:"), 1U);
  testing::expect_nothing_left(job);
}

TEST_F(Tls, AJobMayListenAtIpv6) {
  auto words = arguments("none");
  words.insert(words.end(), {"--tls-listen", "[::1]:0"});
  FaultApp app(words);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(times(testing::trainer_log(app.result()), "control at tls://[::1]:"), 1U);
}

/// openssl.cnf limits the TLS versions of programs that don't set them. weft sets its own version.
TEST_F(Tls, AMachineWhoseOpensslPrefersTls12RunsAJob) {
  const std::string file = folder + "/openssl.cnf";
  std::ofstream(file) << "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                         "system_default = tls\n[tls]\nMaxProtocol = TLSv1.2\n";
  ::setenv("OPENSSL_CONF", file.c_str(), 1);
  FaultApp app(arguments("none"));
  ::unsetenv("OPENSSL_CONF");
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST_F(Tls, OnlyCertificatesOfTheAuthorityComeIn) {
  FaultApp app(arguments("mark"));
  const std::string job = app.job();
  const std::string mark = app.wait_for_line("mark loop");
  const std::uint16_t port = port_of(job);
  const TlsConfig theirs = Authority("theirs").issue(folder + "/theirs", "x");
  const TlsConfig old = authority.issue(folder, "old", {.from_days = -9, .to_days = -1});
  const std::string words = preamble("weftdoor", kAbi, app.token());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(answer_to(port, "", "", words), "");
    EXPECT_EQ(answer_to(port, theirs.certificate, theirs.key, words), "");
    EXPECT_EQ(answer_to(port, old.certificate, old.key, words), "");
    EXPECT_EQ(answer_to(port, ours.certificate, ours.key, preamble("weftdoor", kAbi, kWrong)), "");
  }
  EXPECT_EQ(answer_to(port, ours.certificate, ours.key, words).size(), 32U);
  ::kill(testing::marked(mark), SIGKILL);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("history"), calm());
  const std::string log = testing::trainer_log(app.result());
  for (const char* kind : {"no certificate", "a certificate of another CA or purpose",
                           "a certificate that isn't valid today", "a wrong token"}) {
    EXPECT_EQ(times(log, fmt::format("refused a connection ({})", kind)), 1U) << kind << '\n'
                                                                              << log;
    EXPECT_EQ(times(log, fmt::format("2 ({})", kind)), 1U) << kind << '\n' << log;
  }
}

/// Returns a TLS 1.2 record that contains `body` and claims to have `bytes` bytes of a handshake.
std::string record(std::uint16_t bytes, std::string_view body) {
  std::string text{'\x16', '\x03', '\x01', static_cast<char>(bytes >> 8),
                   static_cast<char>(bytes & 0xff)};
  return text.append(body);
}

/// Sends handshakes that no worker would send.
void expect_takes_handshakes(std::uint16_t port, int count, std::deque<TcpStranger>& silent) {
  const std::string junk(512, '\x5a');
  const std::string hello = std::string("\x01\x00\x01\xfc\x03\x03", 6) + junk.substr(6);
  const std::vector<std::string> wholes{
      basp(1, 0, 0),
      basp(0, 0, 3),
      preamble("weftdoor", kAbi, kWrong) + basp(2, 0xfffffff0U, 0),
      record(512, hello),  // a client's hello with junk after the version
      record(512, junk),
      record(0, ""),
      record(0xffff, junk),
      "GET / HTTP/1.1\r\n\r\n",
  };
  testing::expect_takes_handshakes(port, count, wholes, record(512, hello), silent);
}

/// A worker waits in stop_at_mark() while strangers connect. The worker is killed while some of
/// them are still connected, and its next process has to join in spite of them.
TEST_F(Tls, StrangersChangeNoBitOfTheResult) {
  FaultApp app(arguments("mark"));
  const std::string job = app.job();
  const std::string mark = app.wait_for_line("mark loop");
  const std::uint16_t port = port_of(job);
  std::deque<TcpStranger> silent;
  testing::expect_takes_random_bytes<TcpStranger>(port, 10'000'000);
  expect_takes_handshakes(port, 1000, silent);
  ::kill(testing::marked(mark), SIGKILL);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("history"), calm()) << app.output();
  testing::expect_nothing_left(job);

  const std::string log = testing::trainer_log(app.result());
  EXPECT_EQ(times(log, "refused a connection (no TLS 1.3, or an aborted TLS handshake)"), 1U)
      << log;
  EXPECT_EQ(times(log, "refused a connection (closed before its preamble was complete)"), 1U)
      << log;
  EXPECT_LT(times(log, "refused a connection"), 6U) << log;
  EXPECT_EQ(times(log, "total of refused connections: "), 1U) << log;
}

/// The job is refused before anything starts, so it has no id yet.
TEST_F(Tls, APartOfTheFilesIsRefused) {
  FaultApp app({"--mode", "none", "--tls-certificate", ours.certificate});
  EXPECT_NE(app.wait(), 0);
  EXPECT_NE(app.output().find("backend.tls.key = \"\": is missing"), std::string::npos)
      << app.output();
  EXPECT_EQ(app.output().find("job "), std::string::npos) << app.output();
}

}  // namespace
}  // namespace weft::tls_test
