// Activations and their gradients, elementwise.
#include "activation.h"

void activation_forward(const float *x, float *out, long count, int kind, int threads) {
    long full = count / SIMD_WIDTH * SIMD_WIDTH;
    vec derivative;
#pragma omp parallel for num_threads(threads) private(derivative)
    for (long i = 0; i < full; i += SIMD_WIDTH) store(out + i, activation(load(x + i), kind, &derivative));
    store_partial(out + full, activation(load_partial(x + full, count - full), kind, &derivative), count - full);
}

// out = activation'(x) · outer, where `outer` is the gradient by the activation's output.
void activation_backward(const float *x, const float *outer, float *out, long count, int kind, int threads) {
    long full = count / SIMD_WIDTH * SIMD_WIDTH, rest = count - full;
    vec derivative;
#pragma omp parallel for num_threads(threads) private(derivative)
    for (long i = 0; i < full; i += SIMD_WIDTH) {
        activation(load(x + i), kind, &derivative);
        store(out + i, derivative * load(outer + i));
    }
    activation(load_partial(x + full, rest), kind, &derivative);
    store_partial(out + full, derivative * load_partial(outer + full, rest), rest);
}
