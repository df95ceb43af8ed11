#include "reward_service/program/known_words.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_split.h"

namespace warpsmith {
namespace {

constexpr size_t kNumberBytesMax = 24;

constexpr char kCppWords[] =
    "alignas alignof asm auto bool break case catch char class const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit extern false float "
    "for friend goto if inline int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t "
    "intptr_t uintptr_t long mutable namespace new noexcept nullptr operator private protected ptrdiff_t "
    "public register reinterpret_cast requires return short signed size_t ssize_t sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef typename "
    "union unsigned using virtual void volatile while wchar_t override final __restrict__ __restrict "
    "restrict __attribute__ __forceinline __inline__ always_inline noinline aligned vector_size target "
    "optimize likely unlikely __builtin_expect __builtin_prefetch __builtin_assume_aligned "
    "__builtin_unreachable __builtin_memcpy define undef include ifdef ifndef elif endif pragma defined "
    "error warning line once unroll ivdep GCC omp parallel simd reduction schedule dynamic guided collapse "
    "private firstprivate shared num_threads barrier critical atomic single aligned safelen simdlen nowait";

constexpr char kLibraryWords[] =
    "std vector array string tuple pair optional span unique_ptr shared_ptr make_unique make_shared thread "
    "jthread mutex lock_guard future async function numeric_limits infinity lowest epsilon quiet_NaN min max "
    "clamp swap move forward fill fill_n copy copy_n accumulate transform transform_reduce reduce "
    "inner_product for_each begin end cbegin cend data size resize reserve push_back emplace_back back front "
    "empty get first second join numeric cmath cstdint cstddef cstdlib cstring algorithm limits memory "
    "atomic abs fabs fabsf sqrt sqrtf rsqrt rsqrtf exp expf exp2 exp2f expm1 expm1f log logf log2 log2f "
    "log1p log1pf pow powf sin sinf cos cosf tan tanf tanh tanhf erf erff erfc erfcf floor floorf ceil ceilf "
    "round roundf rint rintf trunc truncf fma fmaf fmax fmaxf fmin fminf hypot copysign isnan isinf isfinite "
    "signbit ldexp frexp lround nearbyint malloc calloc realloc free aligned_alloc posix_memalign memcpy "
    "memset memmove memcmp mmap munmap madvise sysconf getenv printf fprintf exit abort dlopen dlsym syscall "
    "fork signal pthread_create pthread_join sched_setaffinity omp_get_max_threads omp_get_thread_num "
    "omp_set_num_threads hardware_concurrency dlpack h hpp cuh DLTensor DLDataType DLDevice DLManagedTensor "
    "shape strides ndim dtype device byte_offset code bits lanes device_type inputs parameters outputs run C";

constexpr char kTorchWords[] =
    "torch at c10 ATen aten nn functional Tensor TensorOptions IntArrayRef ArrayRef ScalarType Scalar "
    "extension Module Parameter Linear Conv1d Conv2d Conv3d ConvTranspose2d BatchNorm1d BatchNorm2d "
    "LayerNorm GroupNorm InstanceNorm2d RMSNorm Softmax LogSoftmax ReLU GELU SiLU Sigmoid Tanh ELU Mish "
    "Hardtanh Hardswish Softplus LeakyReLU Dropout MaxPool2d AvgPool2d AdaptiveAvgPool2d Embedding LSTM GRU "
    "RNN MultiheadAttention Sequential ModuleList ParameterList Buffer register_buffer register_parameter "
    "state_dict load_state_dict init Model ModelNew get_inputs get_init_inputs forward backward super "
    "__init__ self cls np numpy math os sys ctypes types functools load_inline load cpp_extension utils "
    "cpp_sources cuda_sources functions extra_cflags extra_cuda_cflags extra_ldflags verbose with_cuda name "
    "empty empty_like empty_strided zeros zeros_like ones ones_like full full_like rand randn randint arange "
    "linspace eye tensor from_blob as_tensor view reshape permute transpose contiguous expand unsqueeze "
    "squeeze flatten cat stack chunk split narrow select index_select gather scatter clone detach to cpu "
    "cuda numel sizes stride dim item data_ptr const_data_ptr mutable_data_ptr packed_accessor32 "
    "packed_accessor64 accessor scalar_type options is_cuda is_contiguous is_cpu requires_grad no_grad "
    "inference_mode grad add add_ sub sub_ mul mul_ div div_ neg matmul mm bmm addmm addmv baddbmm einsum "
    "linear conv1d conv2d conv3d batch_norm layer_norm group_norm softmax log_softmax relu relu_ gelu silu "
    "sigmoid mish softplus leaky_relu elu hardtanh hardswish dropout max_pool2d avg_pool2d amax amin argmax "
    "argmin sum mean var std norm prod cumsum cumprod any all where masked_fill topk sort logsumexp "
    "scaled_dot_product_attention cross_entropy mse_loss compile jit script trace fx ops library backends "
    "cudnn mkldnn set_num_threads get_num_threads parallel_for grain_size PYBIND11_MODULE m def py pybind11 "
    "TORCH_EXTENSION_NAME TORCH_CHECK TORCH_LIBRARY AT_DISPATCH_FLOATING_TYPES AT_DISPATCH_ALL_TYPES "
    "AT_DISPATCH_FLOATING_TYPES_AND_HALF scalar_t kFloat kFloat32 kFloat64 kDouble kHalf kBFloat16 kLong "
    "kInt kInt32 kInt64 kBool kCPU kCUDA float32 float64 float16 bfloat16 int32 int64 int8 uint8 half "
    "cblas_sgemm cblas_sgemv cblas_sdot cblas_dgemm cblas mkl openblas sgemm_ CblasRowMajor CblasNoTrans "
    "CblasTrans";

constexpr char kCudaWords[] =
    "__global__ __device__ __host__ __shared__ __constant__ __launch_bounds__ __syncthreads __syncwarp "
    "__shfl_sync __shfl_down_sync __shfl_up_sync __shfl_xor_sync __ballot_sync __activemask __ldg __expf "
    "__logf __fdividef __float2half __half2float __fmaf_rn atomicAdd atomicMax atomicMin atomicCAS threadIdx "
    "blockIdx blockDim gridDim warpSize x y z w dim3 float2 float4 int2 int4 uint4 half2 __half __half2 "
    "__nv_bfloat16 nv_bfloat16 nvcuda wmma fragment matrix_a matrix_b accumulator row_major col_major "
    "fill_fragment load_matrix_sync mma_sync store_matrix_sync cooperative_groups this_thread_block "
    "tiled_partition cg pipeline memcpy_async cuda_runtime cuda_fp16 cuda_bf16 mma cublas cublas_v2 cublasLt "
    "cublasLtMatmul cublasSgemm cublasGemmEx cudnnConvolutionForward cudaMalloc cudaFree cudaMemcpy "
    "cudaMemcpyAsync cudaMemset cudaMemsetAsync cudaStream_t cudaError_t cudaSuccess cudaGetLastError "
    "cudaDeviceSynchronize cudaStreamSynchronize cudaStreamCreate cudaLaunchKernel cudaFuncSetAttribute "
    "cudaGraphLaunch getCurrentCUDAStream CUDAContext stream";

constexpr char kPythonWords[] =
    "and as assert async await break class continue def del elif else except finally for from global if "
    "import in is lambda nonlocal not or pass raise return try while with yield None True False int float "
    "bool str bytes list dict set tuple object range len enumerate zip map filter sorted reversed abs round "
    "isinstance hasattr getattr setattr type id property staticmethod classmethod eval exec open print "
    "globals locals vars gc inspect sys __import__ __call__ __class__ __code__ __dict__ __file__ __name__";

// Beside _mm, _mm256 and _mm512, what names of x86 intrinsics are put together from.
constexpr char kIntrinsicParts[] =
    "abs add adds and andnot alignr avg blend blendv broadcast bslli bsrli castpd castps castsi128 castsi256 "
    "castsi512 castpd128 castpd256 castps128 castps256 castps512 cmp cmpeq cmpgt cmplt cmple cmpge cmpneq "
    "cmpord cmpunord comi conflict cvt cvtepi8 cvtepi16 cvtepi32 cvtepi64 cvtepu8 cvtepu16 cvtepu32 cvtps "
    "cvtpd cvtph cvtss cvtsd cvttps cvtsi32 div dp extract extractf128 extractf32x4 extractf32x8 "
    "extractf64x4 extracti128 floor ceil fmadd fmsub fnmadd fnmsub gather getexp getmant hadd hsub i32gather "
    "i64gather insert insertf128 insertf32x8 load loadu lddqu mask maskz mask2 maskload maskstore max min "
    "mov movehl movelh movehdup moveldup movemask mul mulhi mullo or packs packus permute permute2f128 "
    "permutevar permutevar8x32 permutexvar permutex2var prefetch range rcp rcp14 reduce roundscale round "
    "rsqrt rsqrt14 scalef scatter set set1 setr setzero sfence lfence mfence pause shuffle sign sll slli sra "
    "srai srl srli sqrt store storeu storel stream sub subs test ternarylogic undefined unpackhi unpacklo "
    "xor zeroupper zeroall ps pd ss sd ph pbh epi8 epi16 epi32 epi64 epu8 epu16 epu32 si16 si32 si64 si128 "
    "si256 si512 f32 f64 kand kor knot hint T0 T1 NTA";

constexpr char kVectorTypes[] =
    "__m64 __m128 __m128d __m128i __m256 __m256d __m256i __m512 __m512d __m512i __mmask8 __mmask16 __mmask32 "
    "__mmask64 _MM_HINT_T0 _MM_HINT_T1 _MM_HINT_NTA _MM_SHUFFLE _MM_FROUND_TO_NEAREST_INT _MM_FROUND_NO_EXC "
    "_CMP_LT_OQ _CMP_GT_OQ _CMP_GE_OQ _CMP_LE_OQ _CMP_EQ_OQ immintrin xmmintrin emmintrin x86intrin avx512f "
    "avx2 fma";

using Words = std::unordered_set<std::string>;

Words WordsOf(std::initializer_list<const char*> texts) {
  Words words;
  for (const char* text : texts) words.merge(Words(absl::StrSplit(text, ' ')));
  return words;
}

bool IsIntrinsic(std::string_view word) {
  static const Words parts = WordsOf({kIntrinsicParts});
  constexpr size_t kPartsMax = 6;
  const std::vector<std::string> split = absl::StrSplit(absl::string_view(word.data(), word.size()), '_');
  if (split.size() < 3 || split.size() > kPartsMax || !split[0].empty()) return false;
  if (split[1] != "mm" && split[1] != "mm256" && split[1] != "mm512") return false;
  return std::all_of(split.begin() + 2, split.end(),
                     [](const std::string& part) { return parts.count(part) != 0; });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'); }

size_t SkipDigits(std::string_view text, size_t position, bool hexadecimal) {
  bool has_point = false;
  while (position < text.size()) {
    const char c = text[position];
    const bool digit = hexadecimal ? IsHexDigit(c) : IsDigit(c);
    if (c == '.' ? has_point : (!digit && c != '\'' && c != '_')) break;
    has_point |= c == '.';
    ++position;
  }
  return position;
}

size_t SkipExponent(std::string_view text, size_t position, char letter) {
  if (position == text.size() || (text[position] | 32) != letter) return position;
  size_t end = position + 1;
  if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
  const size_t digits = end;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end == digits ? position : end;
}

}  // namespace

bool IsKnownWord(std::string_view word) {
  static const Words known =
      WordsOf({kCppWords, kLibraryWords, kTorchWords, kCudaWords, kPythonWords, kVectorTypes});
  return known.count(std::string(word)) != 0 || IsIntrinsic(word);
}

bool IsPlainNumber(std::string_view text) {
  if (text.empty() || text.size() > kNumberBytesMax || !(IsDigit(text[0]) || text[0] == '.')) return false;
  const std::string_view prefix = text.substr(0, 2);
  const bool hexadecimal = prefix == "0x" || prefix == "0X";
  const bool prefixed = hexadecimal || prefix == "0b" || prefix == "0B" || prefix == "0o";
  size_t position = SkipDigits(text, prefixed ? 2 : 0, hexadecimal);
  if (prefixed && position == 2) return false;
  position = SkipExponent(text, position, hexadecimal ? 'p' : 'e');
  constexpr size_t kSuffixBytesMax = 3;
  const std::string_view suffix = text.substr(position);
  return suffix.size() <= kSuffixBytesMax &&
         suffix.find_first_not_of("fFlLuUzZhHj") == std::string_view::npos;
}

}  // namespace warpsmith
