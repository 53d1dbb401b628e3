#include <cstdio>

#include <weft/sharding/mesh.hpp>

int main() {
  const weft::Mesh mesh = weft::make_mesh({.chips_per_worker = {4, 4}, .topology = {2, 4}});
  std::puts(mesh.grid().c_str());
  return mesh.axis_size("model") == 4 ? 0 : 1;
}
