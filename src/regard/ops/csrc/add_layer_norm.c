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
        for (long i = 0; i < width; i += LANES) {
            vec sum = load_some(a + i, width - i) + load_some(b + i, width - i);
            total += sum;
            store_some(to + i, sum, width - i);
        }
        float mean = sum_of(total) / width;
        for (long i = 0; i < width; i += LANES) {
            vec apart = load_some(to + i, width - i) - mean;
            if (width - i < LANES)
                for (long beyond = width - i; beyond < LANES; beyond++) apart[beyond] = 0;
            square += apart * apart;
        }
        float scale = 1 / sqrtf(sum_of(square) / width + epsilon);
        for (long i = 0; i < width; i += LANES) {
            vec normed = (load_some(to + i, width - i) - mean) * scale;
            if (gain) normed *= load_some(gain + i, width - i);
            if (bias) normed += load_some(bias + i, width - i);
            store_some(to + i, normed, width - i);
        }
    }
}
