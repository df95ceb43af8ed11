// The Muon update of a weight matrix.
#ifndef WARPSMITH_CORE_KERNELS_MUON_H_
#define WARPSMITH_CORE_KERNELS_MUON_H_

#include <cstdint>
#include <vector>

#include "core/kernels/thread_pool.h"

namespace warpsmith {

struct MuonOptions {
  float learning_rate = 1e-3f;
  float momentum = 0.95f;
  float weight_decay = 0.0f;
  float gradient_scale = 1.0f;  // the factor of clipping
};

// Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with the step size of Liu
// et al., "Muon is Scalable for LLM Training" (arXiv 2502.16982, equation 4), which lets learning rate and
// weight decay of AdamW stay:
//   g = gradient_scale * gradient;  m = momentum m + (1 - momentum) g
//   o = Orthogonalise(momentum m + (1 - momentum) g)
//   p -= learning_rate * weight_decay * p;  p -= learning_rate * 0.2 sqrt(max(rows, columns)) o
// Matrices are [rows, columns], row-major, and do not overlap. `scratch` grows as needed and is kept by the
// caller for the next matrix. The result does not depend on the number of threads.
void MuonStep(const MuonOptions& options, int64_t rows, int64_t columns, const float* gradient,
              float* parameter, float* moment, std::vector<float>* scratch, ThreadPool* pool);

// The matrix [rows, columns] with its singular values brought near 1 (0.7 to 1.2; those below a thousandth of
// its Frobenius norm stay smaller), in place: five Newton-Schulz iterations
//   X = X / |X|;  X = a X + b X X^T X + c X (X^T X)^2,  a, b, c = 3.4445, -4.7750, 2.0315
// of Jordan et al., iterated on the Gram matrix of the smaller side, where they cost less. Zeros stay zeros.
// `scratch` and threads as above.
void Orthogonalise(int64_t rows, int64_t columns, float* matrix, std::vector<float>* scratch,
                   ThreadPool* pool);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_MUON_H_
