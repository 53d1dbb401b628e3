#pragma once
/// Datasets, samplers, tokenizers, and loaders that bring batches to the chips.

#include <weft/data/batch.hpp>
#include <weft/data/dataset.hpp>
#include <weft/data/device_loader.hpp>
#include <weft/data/files.hpp>
#include <weft/data/image_files.hpp>
#include <weft/data/image_transforms.hpp>
#include <weft/data/item_random.hpp>
#include <weft/data/local_data.hpp>
#include <weft/data/packing.hpp>
#include <weft/data/sampler.hpp>
#include <weft/data/storage.hpp>
#include <weft/data/stream.hpp>
#include <weft/data/tar_files.hpp>
#include <weft/data/text_files.hpp>
#include <weft/data/tokenizer.hpp>
#include <weft/data/transforms.hpp>
