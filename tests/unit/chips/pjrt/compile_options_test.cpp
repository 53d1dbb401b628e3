#include "chips/pjrt/compile_options.hpp"

#include <gtest/gtest.h>

namespace weft::pjrt::compile_options_test {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Field 3 of XLA's message has the build options: ordinal -1, replicas, partitions, and device ids.
TEST(CompileOptions, NameTheDeviceOfEachReplica) {
  EXPECT_EQ(hex(CompileOptions{.devices = {0, 1}}.bytes()),
            "1a1b"                      // field 3: build options of 27 bytes
            "08ffffffffffffffffff01"    // field 1: ordinal -1
            "20022801"                  // field 4: two replicas, field 5: one partition
            "4a0a080210011a040a020001"  // field 9: two replicas, one computation, ids {0, 1}
  );
}

TEST(CompileOptions, TakeSeveralBytesForALargeId) {
  EXPECT_EQ(hex(CompileOptions{.devices = {300}}.bytes()),
            "1a1b08ffffffffffffffffff01200128014a0a080110011a040a02ac02");
}

TEST(CompileOptions, ArePortableWithoutDevices) {
  EXPECT_EQ(hex(CompileOptions{}.bytes()), "1a0f08ffffffffffffffffff01200128012001");
}

TEST(CompileOptions, HaveFlagsOfEachType) {
  const std::string none = hex(CompileOptions{}.bytes());
  const auto flags = [&](const FlagValue& value) {
    return hex(CompileOptions{.flags = {{"f", value}}}.bytes()).substr(none.size());
  };
  EXPECT_EQ(flags(true), "3a070a016612021001");
  EXPECT_EQ(flags(false), "3a070a016612021000");
  EXPECT_EQ(flags(std::int64_t{3}), "3a070a016612021803");
  EXPECT_EQ(flags(std::string("ab")), "3a090a016612040a026162");
  EXPECT_EQ(flags(1.0), "3a0e0a0166120921000000000000f03f");
}

}  // namespace
}  // namespace weft::pjrt::compile_options_test
