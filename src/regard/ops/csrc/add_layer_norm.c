// Residual sum and layer norm in one pass over memory.
#include "simd.h"
#include <math.h>

// out = (s - mean) / √(variance + epsilon) · weight + bias for the sum s of two rows.
void add_layer_norm(const float *hidden, const float *update, const float *weight, const float *bias, float *out,
                    long rows, long width, float epsilon, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *a = hidden + row * width, *b = update + row * width;
        float *to = out + row * width;
        vec total = {}, square = {};
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            vec sum = load_partial(a + i, width - i) + load_partial(b + i, width - i);
            total += sum;
            store_partial(to + i, sum, width - i);
        }
        float mean = reduce_sum(total) / width;
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            vec centered = load_partial(to + i, width - i) - mean;
            if (width - i < SIMD_WIDTH)
                for (long lane = width - i; lane < SIMD_WIDTH; lane++) centered[lane] = 0;
            square += centered * centered;
        }
        float scale = 1 / sqrtf(reduce_sum(square) / width + epsilon);
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            vec normed = (load_partial(to + i, width - i) - mean) * scale;
            store_partial(to + i, normed * load_partial(weight + i, width - i), width - i);
        }
        for (long i = 0; i < width; i += SIMD_WIDTH) // a loop of its own: a fused multiply-add would round differently
            store_partial(to + i, load_partial(to + i, width - i) + load_partial(bias + i, width - i), width - i);
    }
}
