// How the matrices of a decoder's layers are trained.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_MATRIX_UPDATE_H_
#define WARPSMITH_CORE_MODEL_TRAINING_MATRIX_UPDATE_H_

namespace warpsmith {

// See core/kernels/adamw.h and muon.h. Muon takes each matrix as a Hugging Face checkpoint has it, also where several
// are stored as one. Norms, embedding and head take AdamW always.
enum class MatrixUpdate { kAdamW, kMuon };

// Returns the name in configurations: "adamw" or "muon".
inline const char* MatrixUpdateName(MatrixUpdate update) {
  return update == MatrixUpdate::kMuon ? "muon" : "adamw";
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_MATRIX_UPDATE_H_
