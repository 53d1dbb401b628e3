#pragma once
/// Chips, meshes of chips, and the layouts of tensors on them.

#include <weft/sharding/atom.hpp>
#include <weft/sharding/chip.hpp>
#include <weft/sharding/device.hpp>
#include <weft/sharding/hybrid_mesh.hpp>
#include <weft/sharding/mesh.hpp>
#include <weft/sharding/mesh_scope.hpp>
#include <weft/sharding/partition_spec.hpp>
#include <weft/sharding/presets.hpp>
#include <weft/sharding/shard_map.hpp>
