#pragma once
/// The Storage of "s3://bucket/key".

#include <weft/data/storage.hpp>

#include "data/remote/s3_settings.hpp"

namespace weft {

/// Requests are repeated after broken connections, timeouts and answers that ask for it (5xx, 429),
/// as often as the settings say, with doubling waits. Errors name bucket, key, status, S3's code
/// and message, and how to fix them.
///
/// Objects of more than `part_bytes` are put in parts, four at a time, and appear with the last
/// request. Each part has a CRC-32 that S3 compares. Objects are read in ranges of one version.
StoragePtr make_s3_storage(S3Settings settings);

}  // namespace weft
