/// Links weft::chips and nothing that builds on it, because a program may run plans on chips
/// without actors.
#include "chips/registry/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "spmd/text/text.hpp"

namespace weft::registry_test {
namespace {

TEST(Registry, MakesAnEngineThatRunsAPlanForItsTarget) {
  const ChipKind& kind = chip_kind(DeviceKind::cpu);
  EXPECT_EQ(kind.kind, DeviceKind::cpu);
  EXPECT_EQ(kind.target->name, "cpu");
  const Mesh mesh({1}, {"data"});
  JobMemory memory = JobMemory::anonymous({.job = "registry", .num_chips = 1});
  const Recorder recorder;
  const std::unique_ptr<Engine> chip =
      kind.make({.memory = memory, .mesh = mesh, .recorder = recorder});
  chip->settle();

  const Program program = parse_program(R"(program(%0: f32[4] data "x" [{}]) {
  %1 = add %0, %0 : f32[4]
  return %1 "y" [{}]
})",
                                        mesh);
  const std::uint64_t x = memory.buffers_offset();
  const std::uint64_t y = x + 4096;
  chip->reserve(x, 8192);
  chip->upload(x, 16, [](std::byte* to) {
    const std::array<float, 4> values{1, 2, 3, 4};
    std::ranges::copy(std::as_bytes(std::span(values)), to);
  });
  chip->run(chip->load(compile(program, mesh, *kind.target)), 1, {.inputs = {x}, .outputs = {y}});
  std::array<float, 4> result{};
  chip->download(y, std::as_writable_bytes(std::span(result)));
  EXPECT_EQ(result, (std::array<float, 4>{2, 4, 6, 8}));
}

}  // namespace
}  // namespace weft::registry_test
