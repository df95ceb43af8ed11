// How the matrices of a decoder's layers are trained.
#ifndef WARPSMITH_TRAINER_MATRIX_UPDATE_H_
#define WARPSMITH_TRAINER_MATRIX_UPDATE_H_

namespace warpsmith {

// See core/kernels/adamw.h and muon.h. Muon takes matrices as they are stored: query, key and value of a
// layer are one, gate and up are one. Norms, embedding and head take AdamW always.
enum class MatrixUpdate { kAdamW, kMuon };

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_MATRIX_UPDATE_H_
