// Two words added and normed, memory passed through once.
#include "simd.h"
#include <math.h>

// out = (s - mean) / √(variance + epsilon) · gain + bias for the sum s of two rows; gain and bias may be missing.
void add_layer_norm(const float *one, const float *other, const float *gain, const float *bias, float *out, long rows,
                 long width, float epsilon, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *a = one + row * width, *b = other + row * width;
        float *to = out + row * width;
        vec total = {}, square = {};
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            vec sum = load_partial(a + i, width - i) + load_partial(b + i, width - i);
            total += sum;
            store_partial(to + i, sum, width - i);
        }
        float mean = reduce_sum(total) / width;
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            vec apart = load_partial(to + i, width - i) - mean;
            if (width - i < SIMD_WIDTH)
                for (long beyond = width - i; beyond < SIMD_WIDTH; beyond++) apart[beyond] = 0;
            square += apart * apart;
        }
        float scale = 1 / sqrtf(reduce_sum(square) / width + epsilon);
        for (long i = 0; i < width; i += SIMD_WIDTH) {
            vec normed = (load_partial(to + i, width - i) - mean) * scale;
            if (gain) normed *= load_partial(gain + i, width - i);
            if (bias) normed += load_partial(bias + i, width - i);
            store_partial(to + i, normed, width - i);
        }
    }
}
