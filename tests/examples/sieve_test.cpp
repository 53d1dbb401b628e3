/// Tests the example that counts primes with actors in four processes.

#include <gtest/gtest.h>

#include "tests/support/app_process.hpp"

namespace weft::sieve_test {
namespace {

TEST(Sieve, CountsThePrimesOfEachActor) {
  testing::AppProcess app({SIEVE, "30"});
  EXPECT_EQ(app.wait(), 0);
  EXPECT_EQ(app.output(),
            "sieve[0]: 1\nsieve[1]: 2\nsieve[2]: 1\nsieve[3]: 2\nsieve[4]: 1\nsieve[5]: 1\n"
            "sieve[6]: 1\nsieve[7]: 1\n10 primes below 30\n");
}

}  // namespace
}  // namespace weft::sieve_test
