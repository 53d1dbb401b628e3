#pragma once
/// Makes the Storage for URLs such as "s3://bucket/key".

#include <weft/data/storage.hpp>

#include "data/remote/s3_settings.hpp"

namespace weft {

/// Requests are repeated after broken connections, timeouts and answers that ask for a repetition
/// (5xx, 429), as often as the settings say. The wait doubles each time. An error has the bucket,
/// the key, the status, S3's code and message, and advice.
///
/// Objects of more than `part_bytes` are put in parts, four at a time; the object appears with the
/// last request. S3 checks the CRC-32 of each part. An object is read in ranges, all of the same
/// version.
StoragePtr make_s3_storage(S3Settings settings);

}  // namespace weft
