// CRC-32C (Castagnoli), as TensorBoard's files use it.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_CRC32C_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace warpsmith {

// RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);

// Rotated and offset, so that a checksum of bytes that hold checksums stays good;
// tensorflow/tsl/lib/hash/crc32c.h.
uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_CRC32C_H_
