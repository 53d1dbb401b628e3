#include "data/images/webp.hpp"

#include <memory>
#include <string_view>

#include <webp/decode.h>
#include <webp/demux.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

const std::uint8_t* webp_bytes(std::span<const std::byte> file) {
  return reinterpret_cast<const std::uint8_t*>(file.data());
}

[[noreturn]] void refuse_webp(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
      fail(Errc::corrupt, "WebP: ends too early; was the file cut off?");
    case VP8_STATUS_OUT_OF_MEMORY: fail(Errc::no_space, "WebP: libwebp is out of memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      fail(Errc::version, "WebP: has a feature that libwebp doesn't read");
    default:
      fail(Errc::corrupt, "WebP: is damaged (libwebp's status {})", static_cast<int>(status));
  }
}

}  // namespace

PixelSize webp_size(std::span<const std::byte> file) {
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(webp_bytes(file), file.size(), &features);
  if (status != VP8_STATUS_OK) refuse_webp(status);
  if (features.has_animation != 0) {
    fail(Errc::version, "WebP: is animated, which weft doesn't read; save a frame of it");
  }
  // The maximum number of pixels per byte of a file. libwebp's encoder packs at most 26,000 pixels
  // of equal color into a byte.
  constexpr std::int64_t kPixelsPerWebpByteMax = 1 << 16;
  check_picture_size(features.width, features.height, file.size(), kPixelsPerWebpByteMax);
  return {features.width, features.height};
}

Picture decode_webp(std::span<const std::byte> file) {
  constexpr int kChannels = 3;
  Picture picture{.size = webp_size(file), .channels = kChannels};
  const std::size_t row_bytes = static_cast<std::size_t>(picture.size.width) * kChannels;
  const std::size_t bytes = row_bytes * static_cast<std::size_t>(picture.size.height);
  WebPDecoderConfig config;
  WEFT_CHECK(WebPInitDecoderConfig(&config) != 0);
  picture.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = picture.bytes.get(), .stride = static_cast<int>(row_bytes), .size = bytes};
  const VP8StatusCode status = WebPDecode(webp_bytes(file), file.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) refuse_webp(status);
  return picture;
}

std::span<const std::byte> webp_exif(std::span<const std::byte> file) {
  const WebPData data{.bytes = webp_bytes(file), .size = file.size()};
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(WebPDemux(&data),
                                                                     WebPDemuxDelete);
  WebPChunkIterator chunk{};
  if (demuxer == nullptr || WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return {};
  const std::span exif(reinterpret_cast<const std::byte*>(chunk.chunk.bytes), chunk.chunk.size);
  WebPDemuxReleaseChunkIterator(&chunk);
  return exif;
}

}  // namespace weft
