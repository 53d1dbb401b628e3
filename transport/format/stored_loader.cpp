#include "transport/format/stored_loader.hpp"

#include "transport/format/tensor_fields.hpp"

namespace weft {

flatbuffers::Offset<LoaderTables> write_loaders(flatbuffers::FlatBufferBuilder& builder,
                                                std::span<const StoredLoader> loaders) {
  if (loaders.empty()) return 0;
  std::vector<flatbuffers::Offset<fb::StoredLoader>> list;
  for (const StoredLoader& loader : loaders) {
    const auto dataset = builder.CreateString(loader.dataset);
    const auto site = loader.site.empty() ? 0 : builder.CreateString(loader.site);
    list.push_back(fb::CreateStoredLoader(
        builder, dataset, loader.num_items, loader.batch_size, loader.batches_per_step, loader.seed,
        site, loader.origin, loader.order_xxh3, loader.passes, loader.taken, loader.step,
        loader.per_step, loader.is_over, loader.is_beside));
  }
  return builder.CreateVector(list);
}

std::vector<StoredLoader> read_loaders(const LoaderTables* stored) {
  std::vector<StoredLoader> loaders;
  if (stored == nullptr) return loaders;
  for (const fb::StoredLoader* loader : *stored) {
    loaders.push_back({.dataset = loader->dataset()->str(),
                       .num_items = loader->num_items(),
                       .batch_size = loader->batch_size(),
                       .batches_per_step = loader->batches_per_step(),
                       .seed = loader->seed(),
                       .site = loader->site() == nullptr ? "" : loader->site()->str(),
                       .origin = loader->origin(),
                       .order_xxh3 = loader->order_xxh3(),
                       .passes = loader->passes(),
                       .taken = loader->taken(),
                       .step = loader->step(),
                       .per_step = loader->per_step(),
                       .is_over = loader->is_over(),
                       .is_beside = loader->is_beside()});
  }
  return loaders;
}

}  // namespace weft
