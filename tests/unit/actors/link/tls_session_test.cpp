#include "transport/wires/tls_session.hpp"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <filesystem>
#include <string>

#include "actors/link/certificate_context.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/tls_stranger.hpp"

namespace weft::tls_session_test {
namespace {

int bytes_waiting(int fd) {
  int bytes = 0;
  ::ioctl(fd, FIONREAD, &bytes);
  return bytes;
}

/// A read that continued as long as data arrives would let the sender block the reader's thread.
TEST(TlsSession, OneReadTakesOneKeyUpdate) {
  const std::string folder = "/tmp/weft-session-" + testing::unique_job();
  const TlsConfig tls = testing::Authority("ours").issue(folder, "node");
  testing::KeyUpdater peer(certificate_context(tls, TlsSide::server),
                           certificate_context(tls, TlsSide::client));
  std::filesystem::remove_all(folder);
  ASSERT_GT(peer.update(2), 1);
  const int before = bytes_waiting(peer.server().fd());
  char byte;
  std::size_t count = 0;
  EXPECT_EQ(peer.server().read({&byte, 1}, count), TlsProgress::wants_read);
  EXPECT_EQ(bytes_waiting(peer.server().fd()), before / 2);
  EXPECT_EQ(peer.server().read({&byte, 1}, count), TlsProgress::wants_read);
  EXPECT_EQ(bytes_waiting(peer.server().fd()), 0);
  peer.say("x");
  auto heard = TlsProgress::wants_read;
  while (heard == TlsProgress::wants_read) heard = peer.server().read({&byte, 1}, count);
  EXPECT_EQ(heard, TlsProgress::done);
  EXPECT_EQ(byte, 'x');
}

}  // namespace
}  // namespace weft::tls_session_test
